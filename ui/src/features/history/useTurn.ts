/**
 * One turn with its payload.
 *
 * It is asked for as a page of one turn where its place is known: a page shows a bad turn with its bytes and the reason,
 * while the request for a single turn fails.
 */

import { useQuery } from "@tanstack/react-query";
import { ApiError } from "../../api/errors";
import { requestJson } from "../../api/http";
import { keys } from "../../api/keys";
import type { DagBranch } from "../../model/dag";
import type { Schema } from "../../model/schema";
import type { Lineage, Related } from "./lineage";

export interface TurnPlace {
	readonly context: string;
	/** A child of the turn; null if the turn is the head of the history. */
	readonly before: string | null;
}

export function useTurn(turn: string, place: TurnPlace | null, query: string) {
	return useQuery({
		queryKey: keys.turn(turn, query),
		queryFn: ({ signal }) => fetchTurn(turn, place, query, signal),
	});
}

async function fetchTurn(turn: string, place: TurnPlace | null, query: string, signal: AbortSignal) {
	if (place !== null) {
		const path = `/v1/contexts/${encodeURIComponent(place.context)}/turns`;
		const page = `${path}?limit=1&before_turn_id=${place.before ?? "0"}&${query}`;
		const { turns } = await requestJson<Schema<"TurnPage">>(page, { signal });
		const [found] = turns;
		// The head may have moved since the place was looked up.
		if (found?.turn_id === turn) return found;
	}
	const path = `/v1/turns/${encodeURIComponent(turn)}`;
	try {
		return await requestJson<Schema<"Turn">>(`${path}?${query}`, { signal });
	} catch (error) {
		if (!(error instanceof ApiError) || !OF_PAYLOAD.has(error.code)) throw error;
		const raw = await requestJson<Schema<"Turn">>(`${path}?view=raw`, { signal });
		return { ...raw, error: { code: error.code, status: error.status, message: error.message } };
	}
}

/** Errors that are about the payload and not about the request. */
const OF_PAYLOAD: ReadonlySet<string> = new Set(["DecodeError", "FailedDependency"]);

/** Where a turn stands among those that are shown. */
export function placeOf(turn: string, lineage: Lineage, related: Related | undefined): TurnPlace | null {
	const { context, turns } = lineage;
	const main = { context: context.context_id, head: turns[0]?.id ?? null, turns };
	const branches: readonly Pick<DagBranch, "context" | "head" | "turns">[] = [main, ...(related?.branches ?? [])];
	for (const { context: id, head, turns: own } of branches) {
		if (head === turn) return { context: id, before: null };
		const child = own.find(({ parent }) => parent === turn);
		if (child !== undefined) return { context: id, before: child.id };
	}
	return null;
}

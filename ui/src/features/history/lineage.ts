/**
 * The turns of a history and of the histories that share its past, without their payloads.
 *
 * Turns never change, so only what is new is fetched again. The API does not say which histories start from a turn: each
 * candidate is followed down until it meets a turn that is known, or a first turn of its own.
 */

import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import type { DagBranch, DagTurn } from "../../model/dag";
import { compareIds } from "../../model/dag";
import type { Schema } from "../../model/schema";

export interface Lineage {
	readonly context: Schema<"Context">;
	/** Newest first. */
	readonly turns: readonly DagTurn[];
	/** Older turns than these exist. */
	readonly hasMore: boolean;
}

export interface TurnPageAnswer {
	/** Newest first. */
	readonly turns: readonly DagTurn[];
	readonly hasMore: boolean;
}

/** So many turns are fetched at once; the server gives no more. */
const PAGE_TURNS = 10_000;
/** Enough for what came since the last look. */
const NEW_TURNS = 100;
/** Histories that are looked at for forks. */
export const CANDIDATES_MAX = 400;
const AT_ONCE = 4;

export async function fetchTurns(
	context: string,
	before: string | null,
	limit: number,
	signal: AbortSignal,
): Promise<TurnPageAnswer> {
	const query = { limit, view: "raw", bytes_render: "len_only", before_turn_id: before ?? "0" } as const;
	const params = { path: { context_id: context }, query };
	const page = await answer(api.GET("/v1/contexts/{context_id}/turns", { params, signal }));
	return { turns: page.turns.map(dagTurn).reverse(), hasMore: page.next_before_turn_id !== null };
}

function dagTurn(turn: Schema<"Turn">): DagTurn {
	const { type_id, type_version } = turn.declared_type;
	return {
		id: turn.turn_id,
		parent: turn.parent_turn_id === "0" ? null : turn.parent_turn_id,
		depth: turn.depth,
		context: turn.context_id,
		createdAt: turn.created_at,
		type: type_id === "" ? "no type" : `${type_id}@${type_version}`,
		bytes: turn.uncompressed_len ?? 0,
	};
}

export const lineageQuery = (id: string) =>
	queryOptions({
		queryKey: keys.context(id, "lineage"),
		queryFn: async ({ signal, client, queryKey }): Promise<Lineage> => {
			const known = client.getQueryData<Lineage>(queryKey);
			const path = { context_id: id };
			const context = await answer(api.GET("/v1/contexts/{context_id}", { params: { path }, signal }));
			if (context.head_turn_id === "0") return { context, turns: [], hasMore: false };
			if (known !== undefined) {
				const extended = extendTurns(known.turns, (await fetchTurns(id, null, NEW_TURNS, signal)).turns);
				if (extended !== null) return { context, turns: extended, hasMore: known.hasMore };
			}
			return { context, ...(await fetchTurns(id, null, PAGE_TURNS, signal)) };
		},
	});

/** Adds what is new to the turns that are known; null if they do not meet. */
export function extendTurns(known: readonly DagTurn[], newest: readonly DagTurn[]): readonly DagTurn[] | null {
	const [top] = known;
	if (top === undefined) return null;
	const at = newest.findIndex(({ id }) => id === top.id);
	if (at < 0) return null;
	return at === 0 ? known : [...newest.slice(0, at), ...known];
}

/** The same lineage with the next older turns. */
export async function withOlder(lineage: Lineage, signal: AbortSignal): Promise<Lineage> {
	const last = lineage.turns.at(-1);
	if (last === undefined || !lineage.hasMore) return lineage;
	const older = await fetchTurns(lineage.context.context_id, last.id, PAGE_TURNS, signal);
	return { ...lineage, turns: [...lineage.turns, ...older.turns], hasMore: older.hasMore };
}

export interface Related {
	/** Histories that share turns with the main one, oldest first, each with only the turns that are its own. */
	readonly branches: readonly DagBranch[];
	/** The head of each history that was looked at, and whether it shares the past. */
	readonly seen: ReadonlyMap<string, Seen>;
	/** Histories that were not looked at. */
	readonly skipped: number;
}

interface Seen {
	readonly head: string;
	readonly branch: DagBranch | null;
}

/** Asked only when the lineage is there. Any notice about a history makes it look again, at what has changed. */
export const relatedQuery = (id: string, isReady: boolean) =>
	queryOptions({
		queryKey: keys.contexts("related", id),
		enabled: isReady,
		queryFn: async ({ signal, client, queryKey }): Promise<Related> => {
			const known = client.getQueryData<Related>(queryKey);
			const lineage = client.getQueryData<Lineage>(keys.context(id, "lineage"));
			const turns = lineage?.turns ?? [];
			const query = { limit: 1000, worlds: false } as const;
			const listed = await answer(api.GET("/v1/contexts", { params: { query }, signal }));
			// Every turn of a shared past is in a history that is at least as old.
			const oldest = turns.at(-1)?.context ?? "0";
			const candidates = listed.contexts.filter(
				({ context_id, head_turn_id }) =>
					context_id !== id && head_turn_id !== "0" && (lineage?.hasMore || compareIds(context_id, oldest) >= 0),
			);
			const skipped = Math.max(0, candidates.length - CANDIDATES_MAX) + (listed.next_cursor === null ? 0 : 1);
			const found = await followAll(candidates.slice(0, CANDIDATES_MAX), turns, known, signal);
			return { ...found, skipped };
		},
	});

/** Follows candidates, oldest first, so that a fork of a fork has only the turns that are its own. */
async function followAll(
	candidates: readonly Schema<"Context">[],
	main: readonly DagTurn[],
	known: Related | undefined,
	signal: AbortSignal,
): Promise<Omit<Related, "skipped">> {
	const ids = new Set(main.map(({ id }) => id));
	const seen = new Map<string, Seen>();
	const branches: DagBranch[] = [];
	const oldestFirst = candidates.toReversed();
	for (let at = 0; at < oldestFirst.length; at += AT_ONCE) {
		const group = oldestFirst.slice(at, at + AT_ONCE);
		const found = await Promise.all(
			group.map(async (context): Promise<Seen> => {
				const head = context.head_turn_id;
				const before = known?.seen.get(context.context_id);
				// A history with a first turn of its own never joins another one.
				if (before !== undefined && (before.branch === null || before.head === head)) return { ...before, head };
				return { head, branch: await follow(context, ids, signal) };
			}),
		);
		for (const [index, each] of found.entries()) {
			const context = group[index];
			if (context === undefined) continue;
			seen.set(context.context_id, each);
			if (each.branch === null) continue;
			// Two that were followed at once may share turns.
			const own = each.branch.turns.filter(({ id }) => !ids.has(id));
			for (const { id } of own) ids.add(id);
			branches.push({ ...each.branch, labels: context.labels, turns: own });
		}
	}
	return { branches, seen };
}

/** The turns of a history down to the first that is known; null if it ends before. */
async function follow(
	context: Schema<"Context">,
	ids: ReadonlySet<string>,
	signal: AbortSignal,
): Promise<DagBranch | null> {
	const { context_id, head_turn_id, labels } = context;
	const branch = (turns: readonly DagTurn[]) => ({ context: context_id, labels, head: head_turn_id, turns });
	if (ids.has(head_turn_id)) return branch([]);
	let turns: readonly DagTurn[] = [];
	let hasMore = true;
	for (let limit = NEW_TURNS; hasMore; limit = PAGE_TURNS) {
		const page = await fetchTurns(context_id, turns.at(-1)?.id ?? null, limit, signal);
		const meets = page.turns.findIndex(({ id }) => ids.has(id));
		if (meets >= 0) return branch([...turns, ...page.turns.slice(0, meets)]);
		turns = [...turns, ...page.turns];
		hasMore = page.hasMore && page.turns.length > 0;
	}
	return null;
}

/** Requests about wrapped sessions. */

import { queryOptions, useQuery } from "@tanstack/react-query";
import { ApiError } from "../../api/errors";
import { answer, api, requestJson } from "../../api/http";
import { idempotent } from "../../api/idempotency";
import { keys } from "../../api/keys";
import type { Schema } from "../../model/schema";
import { type Session, sessionsCalled } from "../../model/session";

/** The sessions, or why this server shows none. */
export type SessionsAnswer =
	| { readonly kind: "shown"; readonly sessions: readonly Session[] }
	| { readonly kind: "closed"; readonly reason: unknown };

export const sessionsAnswerQuery = () =>
	queryOptions({
		queryKey: [...keys.sessions(), "answer"],
		queryFn: async ({ signal }): Promise<SessionsAnswer> => {
			try {
				const { sessions } = await answer(api.GET("/v1/sessions", { signal }));
				return { kind: "shown", sessions };
			} catch (error) {
				if (!(error instanceof ApiError) || error.status !== 404) throw error;
				return { kind: "closed", reason: error.details.reason };
			}
		},
	});

/** `isAll` also lists what was printed without a submitted prompt. */
export const capturedTurnsQuery = (session: string, isAll: boolean) =>
	queryOptions({
		queryKey: keys.session(session, "turns", isAll ? "all" : "prompted"),
		queryFn: async ({ signal }) => {
			const query = isAll ? "?all=1" : "";
			const path = `/v1/sessions/${encodeURIComponent(session)}/turns${query}`;
			return (await requestJson<Schema<"CapturedTurnList">>(path, { signal })).turns;
		},
	});

/** A captured turn never changes, but it may leave the ring. */
export const capturedTurnQuery = (session: string, seq: string, isRaw: boolean) =>
	queryOptions({
		queryKey: keys.session(session, "turn", seq, isRaw ? "raw" : "text"),
		queryFn: ({ signal }) => {
			const path = `/v1/sessions/${encodeURIComponent(session)}/turns/${encodeURIComponent(seq)}${isRaw ? "?raw=1" : ""}`;
			return requestJson<Schema<"CapturedTurn">>(path, { signal });
		},
	});

export type FoundSession =
	| { readonly kind: "pending" }
	| { readonly kind: "failed"; readonly error: unknown; readonly retry: () => void }
	| { readonly kind: "closed"; readonly reason: unknown }
	| { readonly kind: "missing" }
	| { readonly kind: "many"; readonly sessions: readonly Session[] }
	| { readonly kind: "found"; readonly session: Session; readonly others: readonly Session[] };

/** The session that the URL names, by its id, its name or the head of its id. */
export function useSession(name: string): FoundSession {
	const { data, error, refetch } = useQuery(sessionsAnswerQuery());
	if (data === undefined) {
		return error === null ? { kind: "pending" } : { kind: "failed", error, retry: () => void refetch() };
	}
	if (data.kind === "closed") return data;
	const found = sessionsCalled(data.sessions, name);
	const [session] = found;
	if (session === undefined) return { kind: "missing" };
	if (found.length > 1) return { kind: "many", sessions: found };
	return { kind: "found", session, others: data.sessions.filter((each) => each !== session) };
}

/** A POST to a session. Sent again with the same key, it is not carried out twice. */
export function postToSession<T>(session: string, verb: SessionVerb, body: object, key: string): Promise<T> {
	const path = `/v1/sessions/${encodeURIComponent(session)}/${verb}`;
	return requestJson<T>(path, { method: "POST", body, headers: idempotent(key) });
}

export type SessionVerb = "capture" | "paste" | "deliver" | "keep";

/**
 * The lists that more than one area shows, each with its one key and its one request.
 *
 * `useQuery(runsQuery())`. What only one feature fetches stays in that feature, under a key of `keys.ts`.
 */

import { queryOptions } from "@tanstack/react-query";
import { labelWithAlias } from "../model/agent-name";
import type { RunSummary } from "../model/run-summary";
import type { Schema } from "../model/schema";
import type { Session } from "../model/session";
import { ApiError } from "./errors";
import { answer, api, requestJson } from "./http";
import { keys } from "./keys";

/** All runs in short, newest first. */
export const runsQuery = () =>
	queryOptions({
		queryKey: [...keys.runs(), "summary"],
		queryFn: async ({ signal }) => {
			const list = await requestJson<{ readonly runs: readonly RunSummary[] }>("/api/runs?summary=1", { signal });
			return list.runs;
		},
	});

/** All runs with their agents and artifacts. Large: for search and for finding the run of a thing. */
export const wholeRunsQuery = () =>
	queryOptions({
		queryKey: [...keys.runs(), "whole"],
		queryFn: async ({ signal }) => (await requestJson<Schema<"RunList">>("/api/runs", { signal })).runs,
	});

export interface KnownAgent {
	readonly name: string;
	readonly run: string;
}

/**
 * What people call the agents of all runs, by id. For chips far from the run. It is large, and names hardly ever change,
 * so no notice makes it stale.
 */
export const agentNamesQuery = () =>
	queryOptions({
		queryKey: ["agent-names"] as const,
		queryFn: async ({ signal }): Promise<Readonly<Record<string, KnownAgent>>> => {
			const { runs } = await requestJson<Schema<"RunList">>("/api/runs", { signal });
			// A fork has the ids of its origin, which stands behind it in the list.
			const agents = runs.flatMap((run) => Object.values(run.nodes).map((node) => [run.id, node] as const));
			return Object.fromEntries(
				agents.map(([run, { id, label, alias }]) => [id, { name: labelWithAlias(label, alias ?? null), run }]),
			);
		},
	});

/** All ledgers with their people. */
export const worldsQuery = () =>
	queryOptions({
		queryKey: keys.worlds(),
		queryFn: async ({ signal }) => (await answer(api.GET("/v1/worlds", { signal }))).worlds,
	});

/** The tokens of a ledger, without their secrets, oldest first. */
export const tokensQuery = (world: string) =>
	queryOptions({
		queryKey: keys.world(world, "tokens"),
		queryFn: async ({ signal }) =>
			(await answer(api.GET("/v1/worlds/{world}/tokens", { params: { path: { world } }, signal }))).tokens,
	});

/** All known types. */
export const typesQuery = () =>
	queryOptions({
		queryKey: keys.registry("types"),
		queryFn: async ({ signal }) => (await answer(api.GET("/v1/registry/types", { signal }))).types,
	});

/** The agent programs of the server's machine. */
export const providersQuery = () =>
	queryOptions({
		queryKey: keys.system("providers"),
		queryFn: async ({ signal }) => (await answer(api.GET("/api/providers", { signal }))).providers,
	});

/** Wrapped sessions, or null where this server does not show them (no broker inside, or not on loopback). */
export const sessionsQuery = () =>
	queryOptions({
		queryKey: keys.sessions(),
		queryFn: async ({ signal }): Promise<readonly Session[] | null> => {
			try {
				return (await requestJson<{ readonly sessions: readonly Session[] }>("/v1/sessions", { signal })).sessions;
			} catch (error) {
				if (error instanceof ApiError && error.status === 404) return null;
				throw error;
			}
		},
	});

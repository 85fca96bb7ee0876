/** The newest lines of a ledger's audit, and earlier ones on request. */

import { type QueryClient, queryOptions } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { type AuditTrail, endOf, findLastPage } from "../../model/audit-trail";
import type { Schema } from "../../model/schema";

const PAGE_LINES = 500;
/** A refetch reads at most so many pages. After a longer absence it begins at the end again. */
const NEW_PAGES_MAX = 4;

/** Lines never change, so a refetch reads only those that came after the held ones. */
export const auditQuery = (world: string) =>
	queryOptions({
		queryKey: keys.world(world, "audit"),
		queryFn: async ({ client, queryKey, signal }): Promise<AuditTrail> => {
			const held = client.getQueryData<AuditTrail>(queryKey);
			const added = held === undefined ? null : await linesFrom(world, endOf(held), signal);
			if (added === null) return beginTrail(world, signal);
			// Earlier lines may have been put before them in the meantime.
			const now = client.getQueryData<AuditTrail>(queryKey) ?? held;
			return now === undefined ? beginTrail(world, signal) : { ...now, lines: [...now.lines, ...added] };
		},
		// Thousands of lines need not be compared with themselves.
		structuralSharing: false,
	});

/** Fetches the page before the held lines, and puts it into the cache. */
export async function loadEarlier(client: QueryClient, world: string): Promise<void> {
	const { queryKey } = auditQuery(world);
	const held = client.getQueryData(queryKey);
	if (held === undefined || held.first === 0) return;
	const first = Math.max(0, held.first - PAGE_LINES);
	const { lines } = await fetchPage(world, first, held.first - first);
	client.setQueryData(queryKey, (now) =>
		now?.first === held.first ? { first, lines: [...lines, ...now.lines] } : now,
	);
}

/** The last two pages: the last one alone may have a single line. */
async function beginTrail(world: string, signal: AbortSignal): Promise<AuditTrail> {
	const { lines, next_cursor } = await fetchPage(world, 0, PAGE_LINES, signal);
	if (next_cursor == null) return { first: 0, lines };
	const last = await findLastPage(
		async (page) => (await fetchPage(world, page * PAGE_LINES, 1, signal)).lines.length > 0,
	);
	const first = Math.max(0, last - 1) * PAGE_LINES;
	return { first, lines: (await linesFrom(world, first, signal)) ?? [] };
}

/** The lines from a number to the end; null if there are too many to read at once. */
async function linesFrom(world: string, from: number, signal: AbortSignal): Promise<Schema<"AuditLine">[] | null> {
	const found: Schema<"AuditLine">[] = [];
	for (let at = 0; at < NEW_PAGES_MAX; at += 1) {
		const { lines, next_cursor } = await fetchPage(world, from + found.length, PAGE_LINES, signal);
		found.push(...lines);
		if (next_cursor == null) return found;
	}
	return null;
}

function fetchPage(world: string, cursor: number, limit: number, signal?: AbortSignal): Promise<Schema<"AuditPage">> {
	const params = { path: { world }, query: { cursor, limit } };
	return answer(api.GET("/v1/worlds/{world}/audit/lines", { params, ...(signal === undefined ? {} : { signal }) }));
}

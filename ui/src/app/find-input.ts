/**
 * Where a handoff or a message is: its run, and whom it is from and to.
 *
 * Neither names its run. The chain of its causes says when it was sent, so runs of that time are searched first, and the
 * oldest before others: a fork has the ids of its origin.
 */

import { answer, api } from "../api/http";
import type { RunEvent } from "../model/run";
import type { Schema } from "../model/schema";

type RunView = Schema<"RunView">;

/** What is needed of a page of events; tests give their own. */
export type FetchPage = (
	run: string,
	query: { readonly types: string; readonly before: number | null },
) => Promise<{ readonly events: readonly RunEvent[]; readonly before: number | null }>;

const PAGE = 2_000;

export function eventPages(signal: AbortSignal): FetchPage {
	return async (run, { types, before }) => {
		const query = { limit: PAGE, types, ...(before === null ? {} : { before }) };
		const path = { run_id: run };
		const found = await answer(api.GET("/api/runs/{run_id}/events", { params: { path, query }, signal }));
		return { events: found.events, before: found.page.hasMore ? (found.page.nextCursor ?? null) : null };
	};
}

/** The runs that may have what was sent at a time: first those that were at work then, of each the oldest first. */
export function runsOfTime(newestFirst: readonly RunView[], at: string | null): RunView[] {
	const oldestFirst = newestFirst.toReversed();
	if (at === null) return oldestFirst;
	const ms = Date.parse(at);
	const begun = oldestFirst.filter((run) => Date.parse(run.createdAt) <= ms);
	// The list may be a moment older than what was sent.
	const isOver = (run: RunView) => Date.parse(run.updatedAt) < ms;
	return [...begun.filter((run) => !isOver(run)), ...begun.filter(isOver)];
}

/** The event in which a handoff was sent or held; null if no run has it. */
export function findHandoff(runs: readonly RunView[], id: string, fetchPage: FetchPage) {
	return findEvent(runs, "handoff.sent,handoff.held", fetchPage, (event) =>
		(event.type === "handoff.sent" || event.type === "handoff.held") && event.envelope.id === id
			? event.envelope
			: null,
	);
}

/** The event in which a message was sent; null if no run has it. */
export function findMessage(runs: readonly RunView[], id: string, fetchPage: FetchPage) {
	return findEvent(runs, "message.user", fetchPage, (event) =>
		event.type === "message.user" && event.message.id === id ? event.message : null,
	);
}

async function findEvent<Found>(
	runs: readonly RunView[],
	types: string,
	fetchPage: FetchPage,
	read: (event: RunEvent) => Found | null,
): Promise<{ readonly run: RunView; readonly found: Found } | null> {
	for (const run of runs) {
		for (let before: number | null = null; ; ) {
			const page = await fetchPage(run.id, { types, before });
			for (const event of page.events) {
				const found = read(event);
				if (found !== null) return { run, found };
			}
			if (page.before === null) break;
			before = page.before;
		}
	}
	return null;
}

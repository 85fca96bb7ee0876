/** The filters of the list of runs. */

import type { RunSummary } from "./run-summary";

export const RUN_FILTERS = ["active", "waiting", "over"] as const;
export type RunFilter = (typeof RUN_FILTERS)[number];

/** Null is no filter. */
export function readRunFilter(text: string | null): RunFilter | null {
	return RUN_FILTERS.find((filter) => filter === text) ?? null;
}

export function runFilterWord(filter: RunFilter): string {
	switch (filter) {
		case "active":
			return "Active";
		case "waiting":
			return "Waits for you";
		case "over":
			return "Completed or failed";
	}
}

export function filterRuns(runs: readonly RunSummary[], filter: RunFilter | null): readonly RunSummary[] {
	switch (filter) {
		case null:
			return runs;
		case "active":
			return runs.filter(({ status }) => status === "running" || status === "queued");
		case "waiting":
			return runs.filter((run) => run.status === "paused" || run.openApprovals > 0);
		case "over":
			return runs.filter(({ status }) => status === "completed" || status === "failed");
	}
}

import type { Schema } from "./schema";

/** A run in a list: `GET /api/runs?summary=1`, which `openapi.json` does not describe apart from the whole list. */
export interface RunSummary
	extends Pick<
		Schema<"RunView">,
		| "id"
		| "status"
		| "phase"
		| "mode"
		| "globalMode"
		| "createdAt"
		| "updatedAt"
		| "title"
		| "usage"
		| "pausedReason"
		| "goal"
		| "cwd"
		| "world"
	> {
	readonly nodeCount: number;
	/** How many agents have an open turn. */
	readonly runningCount: number;
	/** How many decisions wait for a person. */
	readonly openApprovals: number;
}

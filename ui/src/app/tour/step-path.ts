/** The page of each step. */

import type { Schema } from "../../model/schema";
import type { TourStep } from "../../model/tour";
import type { TourDemo } from "../../model/tour-demo";
import { paths } from "../paths";

/** Undefined while the run is not known. */
export type DemoRun = Schema<"RunView"> | null | undefined;

/** Where a step happens; undefined while that is not known, null if there is no such page. */
export function pathOfStep(step: TourStep, demo: TourDemo, run: DemoRun): string | null | undefined {
	switch (step) {
		case "inbox":
		case "approval":
			return paths.inbox();
		case "line":
			return run === undefined ? undefined : pathOfDiff(demo, run);
		case "wait":
			return paths.why(demo.run);
		case "people":
			return paths.ledger(demo.world, { as: demo.persons[0] });
		case "fork":
			return paths.history(demo.context);
		case "apply":
			return paths.changes(demo.run);
	}
}

/** The diffs of the agent that changed the file last. */
function pathOfDiff({ file, line }: TourDemo, run: Schema<"RunView"> | null): string | null {
	const diffs = Object.values(run?.artifacts ?? {}).filter(
		({ kind, nodeId, metadata }) => kind === "diff" && nodeId != null && metadata?.filesChanged.includes(file),
	);
	const newest = diffs.toSorted((one, other) => Date.parse(one.createdAt) - Date.parse(other.createdAt)).at(-1);
	return run === null || newest?.nodeId == null ? null : paths.agent(run.id, newest.nodeId, "diffs", { file, line });
}

/** Whether the page of a path is open, whatever is chosen in it. */
export function isPageOf(path: string, pathname: string): boolean {
	return new URL(path, location.origin).pathname === pathname;
}

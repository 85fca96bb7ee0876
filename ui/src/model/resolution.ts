/** How an approval was resolved, and by whom, in words. */

import type { Schema } from "./schema";
import { firstLine } from "./text-safety";
import { unknownWord } from "./unknown-word";

type Resolution = Schema<"ResolutionView">;

/** "✓ You approved it on the command line", "✕ Turnkeep denied it". */
export function resolutionWords({ status, by }: Pick<Resolution, "status" | "by">): string {
	switch (status) {
		case "approved":
			return `✓ ${actorOf(by)} approved it${placeOf(by)}`;
		case "modified":
			return `✓ ${actorOf(by)} changed it and approved${placeOf(by)}`;
		case "denied":
			return `✕ ${actorOf(by)} denied it${placeOf(by)}`;
		default:
			return unknownWord(status);
	}
}

/** What is said to somebody whose answer came second: "It was already denied on the command line: Not now." */
export function earlierAnswer(earlier: Partial<Resolution>): string | null {
	if (earlier.status === undefined) return null;
	const reason = earlier.reason == null ? "" : `: ${firstLine(earlier.reason)}`;
	const by = earlier.by === "daemon" ? " by Turnkeep itself" : placeOf(earlier.by);
	return `Your answer came second. It was already ${earlier.status}${by}${reason}.`;
}

function actorOf(by: Resolution["by"]): string {
	return by === "daemon" ? "Turnkeep" : "You";
}

/** Where a person answered. Records of older versions do not say it. */
function placeOf(by: Resolution["by"]): string {
	switch (by) {
		case undefined:
		case null:
		case "daemon":
			return "";
		case "web":
			return " in the web UI";
		case "command-line":
			return " on the command line";
		case "api":
			return " over the API";
		default:
			return ` (${unknownWord(by)})`;
	}
}

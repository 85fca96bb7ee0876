/** Whether the server can write, and whether anything was lost. */

import { StateWord } from "../../components/StateWord";
import { formatNumberOf } from "../../model/quantity";
import type { ServerStats } from "./stats-query";

export function ServerState({ stats }: { readonly stats: ServerStats }) {
	if (stats.poisoned) {
		return (
			<StateWord tone="failed" word="read only">
				a write to the log failed, so nothing is written until a restart: check the disk, then start the server again.
				Reads go on
			</StateWord>
		);
	}
	if (stats.lost_turns + stats.lost_contexts > 0) {
		return (
			<StateWord tone="waiting" word="damaged">
				{formatNumberOf(stats.lost_turns, "turn")} and the beginning of{" "}
				{formatNumberOf(stats.lost_contexts, "history", "histories")} were lost: <code>turnkeep verify</code> names them
			</StateWord>
		);
	}
	return (
		<StateWord tone="done" word="healthy">
			the log takes writes, and nothing was lost
		</StateWord>
	);
}

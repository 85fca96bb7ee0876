/** What the run does, and why, beside its title. */

import { StateWord } from "../../../components/StateWord";
import { formatCost, formatTokens } from "../../../model/quantity";
import { phaseWord, runStateWords } from "../../../model/run-words";
import { Age } from "./Age";
import css from "./RunView.module.css";
import { useRun } from "./run-source";
import { type AgentGroups, countOf } from "./useAgentGroups";

export function RunState({ groups }: { readonly groups: AgentGroups }) {
	const run = useRun((state) => state.run);
	const stall = useRun((state) => state.stall);
	if (run === null) return null;
	const detail = { running: groups.running.length, waiting: groups.waiting.length, agents: countOf(groups), stall };
	const { tone, word, reason, since } = runStateWords(run, detail);
	return (
		<p className={css.state}>
			<StateWord tone={tone} word={word}>
				{reason}
				{since !== null && run.status !== "running" && (
					<>
						{" · "}
						<Age since={since} />
					</>
				)}
			</StateWord>
			<span className={css.numbers}>
				{phaseWord(run.phase)} · {formatTokens(run.usage.totalTokens)} tokens · {formatCost(run.usage.costUsd)}
			</span>
		</p>
	);
}

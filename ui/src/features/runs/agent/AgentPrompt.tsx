/** What an agent was told in a turn. */

import { EmptyState } from "../../../components/EmptyState";
import { ErrorNote } from "../../../components/ErrorNote";
import { SelectField } from "../../../components/Field";
import { Skeleton } from "../../../components/Skeleton";
import { useQueryParam } from "../../../components/useQueryParam";
import type { AgentTurn } from "../../../model/agent-turns";
import type { RunNode } from "../../../model/run";
import { formatExact, parseTime } from "../../../model/time";
import { turnsOptions } from "./agent-events";
import { PromptView } from "./PromptView";
import { useEventLog } from "./useEventLog";

export function AgentPrompt({ node }: { readonly node: RunNode }) {
	const { view, retry } = useEventLog(node.runId, `turns ${node.id}`, (run) => turnsOptions(run, node.id));
	const [chosen, choose] = useQueryParam("turn");
	if (view.status === "loading") return <Skeleton lines={8} />;
	if (view.status === "failed") return <ErrorNote error={view.error} onRetry={retry} />;
	const prompted = view.state.filter((turn) => turn.promptFull !== null);
	const current = prompted.find((turn) => turn.id === chosen) ?? prompted.at(-1);
	if (current === undefined) {
		return (
			<EmptyState title="No prompt yet">
				What this agent is told is shown here, word by word, when its first turn begins.
			</EmptyState>
		);
	}
	return (
		<>
			<div style={{ maxWidth: "40rem" }}>
				<SelectField
					label="Turn"
					value={current.id}
					options={prompted.toReversed().map((turn) => ({ value: turn.id, label: promptLabel(turn) }))}
					onChange={choose}
				/>
			</div>
			<PromptView key={current.id} turn={current} />
		</>
	);
}

function promptLabel(turn: AgentTurn): string {
	const at = parseTime(turn.startedAt);
	const when = at === null ? "" : formatExact(at).slice(0, 19);
	const kind = turn.promptKind === null ? "" : ` · ${turn.promptKind} prompt`;
	return `Turn ${turn.id.slice(0, 8)} · ${when}${kind}`;
}

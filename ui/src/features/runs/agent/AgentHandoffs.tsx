/** What an agent handed to others, and what it got. */

import { EmptyState } from "../../../components/EmptyState";
import { ErrorNote } from "../../../components/ErrorNote";
import { Skeleton } from "../../../components/Skeleton";
import { Segments } from "../../../components/Tabs";
import { useQueryParam } from "../../../components/useQueryParam";
import type { RunNode, RunState, TrackedEnvelope } from "../../../model/run";
import { handoffOptions } from "./agent-events";
import css from "./Diffs.module.css";
import { HandoffList, newestFirst } from "./HandoffList";
import { useEventLog } from "./useEventLog";

const DIRECTIONS = [
	{ value: "all", label: "All" },
	{ value: "in", label: "Received" },
	{ value: "out", label: "Sent" },
] as const;
type Direction = (typeof DIRECTIONS)[number]["value"];

export function AgentHandoffs({ state, node }: { readonly state: RunState; readonly node: RunNode }) {
	const { view, retry } = useEventLog(node.runId, "handoffs", handoffOptions);
	const [wanted, setWanted] = useQueryParam("direction");
	const direction = DIRECTIONS.find(({ value }) => value === wanted)?.value ?? "all";
	if (view.status === "loading") return <Skeleton lines={8} />;
	if (view.status === "failed") return <ErrorNote error={view.error} onRetry={retry} />;
	const mine = Object.values(view.state.envelopes).filter(
		({ envelope }) => envelope.fromNodeId === node.id || envelope.toNodeId === node.id,
	);
	if (mine.length === 0) {
		return (
			<EmptyState title="No handoffs">
				Work that this agent gives to others, and gets from them, is shown here. Agents hand off over the connections
				between them.
			</EmptyState>
		);
	}
	return (
		<div className={css.frame}>
			<div>
				<Segments<Direction>
					label="Direction"
					value={direction}
					options={DIRECTIONS}
					onChange={(value) => setWanted(value === "all" ? null : value)}
				/>
			</div>
			<HandoffList
				label={`Handoffs of ${node.label}`}
				runId={node.runId}
				handoffs={newestFirst(mine.filter((tracked) => isWanted(tracked, node.id, direction)))}
				nodes={state.nodes}
			/>
		</div>
	);
}

function isWanted({ envelope }: TrackedEnvelope, node: string, direction: Direction): boolean {
	switch (direction) {
		case "all":
			return true;
		case "in":
			return envelope.toNodeId === node;
		case "out":
			return envelope.fromNodeId === node;
	}
}

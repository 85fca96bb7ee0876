/** An edge beside the graph: its ends, what it carries, and how much went over it. */

import { Link } from "wouter";
import { paths } from "../../../app/paths";
import { Button } from "../../../components/Button";
import { Facts } from "../../../components/Card";
import { Drawer } from "../../../components/Drawer";
import { RefChip } from "../../../components/refs/RefChip";
import type { Traffic } from "../../../model/handoffs";
import { formatNumberOf } from "../../../model/quantity";
import { firstLine } from "../../../model/text-safety";
import css from "./Drawers.module.css";
import { useRun, useRunSource } from "./run-source";
import { useAgentNames } from "./useAgentNames";
import type { GraphActions } from "./useRunScreen";

export interface EdgeDrawerProps {
	readonly runId: string;
	readonly id: string;
	readonly traffic: Traffic | null;
	readonly actions: GraphActions;
	readonly onDelete: () => void;
}

export function EdgeDrawer({ runId, id, traffic, actions, onDelete }: EdgeDrawerProps) {
	const edge = useRun((state) => state.edges[id]);
	const { isPast } = useRunSource();
	const names = useAgentNames();
	if (edge === undefined) {
		return (
			<Drawer title="A connection that is not here" onClose={actions.close}>
				<p>It was deleted, or it belongs to another run.</p>
			</Drawer>
		);
	}
	const nameOf = (agent: string) => names.all.get(agent) ?? "an agent that is gone";
	const agentLink = (agent: string) => (
		<button type="button" className={css.link} onClick={() => actions.openAgent(agent)}>
			{nameOf(agent)}
		</button>
	);
	const counts = traffic?.get(id);
	return (
		<Drawer title={`${nameOf(edge.from)} → ${nameOf(edge.to)}`} onClose={actions.close}>
			<div className={css.body}>
				<Facts
					facts={[
						["Ref", <RefChip key="ref" to={{ kind: "edge", id }} href={paths.edge(runId, id)} />],
						["From", agentLink(edge.from)],
						["To", agentLink(edge.to)],
						["Carries", `${edge.type}${edge.label === "" ? "" : `: ${firstLine(edge.label, 60)}`}`],
						["Direction", edge.bidirectional ? "both ways" : "one way"],
						["Check", edge.gate ? "a success is verified before it is delivered" : "none"],
						["Handoffs", handoffWords(counts)],
					]}
				/>
				<p className={css.links}>
					<Link href={paths.edge(runId, id)}>Read the handoffs</Link>
				</p>
				{!isPast && (
					<Button look="danger" onClick={onDelete}>
						Disconnect
					</Button>
				)}
			</div>
		</Drawer>
	);
}

function handoffWords(counts: { readonly total: number; readonly waiting: number } | undefined): string {
	if (counts === undefined) return "none yet";
	return `${formatNumberOf(counts.total, "handoff")}, ${counts.waiting === 0 ? "none waits" : `${counts.waiting} waiting`}`;
}

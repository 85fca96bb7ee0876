/** Handoffs, newest first. One that waits is drawn with a broken edge, one that was read is not. */

import { useRef } from "react";
import { cx } from "../../../components/cx";
import { listBindings, useKeys } from "../../../components/keys";
import { RefChip } from "../../../components/refs/RefChip";
import { Time } from "../../../components/Time";
import { useQueryParam } from "../../../components/useQueryParam";
import { VirtualList } from "../../../components/VirtualList";
import type { EnvelopeState, RunNode, TrackedEnvelope } from "../../../model/run";
import { AgentChip } from "./AgentChip";
import { useOpened } from "./AgentTimeline";
import css from "./HandoffList.module.css";
import { HandoffBody, HandoffState } from "./HandoffView";

export interface HandoffListProps {
	readonly label: string;
	readonly runId: string;
	readonly handoffs: readonly TrackedEnvelope[];
	readonly nodes: Readonly<Record<string, RunNode>>;
}

const ROW_PX = 110;

/** The URL may name a handoff, which comes into view and is marked. */
export function HandoffList({ label, handoffs, nodes }: HandoffListProps) {
	const [named] = useQueryParam("handoff");
	const frame = useRef<HTMLDivElement>(null);
	const { opened, toggle } = useOpened();
	useKeys(
		label,
		listBindings(() => frame.current),
	);
	return (
		<div ref={frame} className={css.frame}>
			<VirtualList
				label={label}
				items={handoffs}
				itemKey={({ envelope }) => envelope.id}
				estimate={ROW_PX}
				named={named}
				renderItem={({ envelope, state }) => (
					<article
						className={cx(css.handoff, isResting(state) && css.resting, envelope.id === named && css.named)}
						aria-current={envelope.id === named || undefined}
						data-item=""
						data-ref={`envelope:${envelope.id}`}
						tabIndex={-1}
					>
						<p className={css.head}>
							<AgentChip id={envelope.fromNodeId} nodes={nodes} />
							<span>to</span>
							<AgentChip id={envelope.toNodeId} nodes={nodes} />
							<Time at={envelope.createdAt} />
							<HandoffState state={state} />
							{state.kind === "consumed" && <RefChip to={{ kind: "agentTurn", id: state.turnId }} />}
							<RefChip to={{ kind: "envelope", id: envelope.id }} />
						</p>
						<HandoffBody
							envelope={envelope}
							isOpen={opened.has(envelope.id)}
							onToggle={(isOpen) => toggle(envelope.id, isOpen)}
						/>
					</article>
				)}
			/>
		</div>
	);
}

function isResting(state: EnvelopeState): boolean {
	return state.kind === "queued" || state.kind === "held";
}

/** Newest first. */
export function newestFirst(handoffs: readonly TrackedEnvelope[]): TrackedEnvelope[] {
	return handoffs.toSorted((one, other) => other.seq - one.seq);
}

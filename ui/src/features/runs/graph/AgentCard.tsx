/** An agent in the graph: who it is, what it does and why, what came of it. A press opens its details beside the graph. */

import { Handle, type Node, type NodeProps, Position, useStore } from "@xyflow/react";
import { memo } from "react";
import { cx } from "../../../components/cx";
import { StateWord } from "../../../components/StateWord";
import { formatCost, formatTokens } from "../../../model/quantity";
import { providerWord } from "../../../model/run-words";
import { firstLine } from "../../../model/text-safety";
import { Age } from "./Age";
import css from "./AgentCard.module.css";
import { type Agent, useAgent } from "./useAgent";

export interface CardData extends Record<string, unknown> {
	/** Whether Tab stops here; one card of the graph takes it, keys move between cards. */
	readonly isCurrent: boolean;
	/** The files that another agent writes at the same time, in words. */
	readonly conflict: string | null;
	readonly canConnect: boolean;
	readonly onOpen: (id: string) => void;
	readonly onFocus: (id: string) => void;
}

export type CardNode = Node<CardData, "agent">;

/** Below this zoom small text cannot be read. */
const FAR_ZOOM = 0.42;

export const AgentCard = memo(function AgentCard({ id, data, selected }: NodeProps<CardNode>) {
	const agent = useAgent(id);
	const isFar = useStore((state) => state.transform[2] < FAR_ZOOM);
	if (agent === null) return null;
	const className = cx(
		css.card,
		css[agent.words.tone],
		data.conflict !== null && css.conflict,
		selected && css.selected,
		isFar && css.far,
	);
	return (
		<>
			<Handle type="target" position={Position.Left} className={css.port} isConnectable={data.canConnect} />
			<button
				type="button"
				className={className}
				tabIndex={data.isCurrent ? 0 : -1}
				data-item=""
				data-agent={id}
				aria-pressed={selected}
				onClick={() => data.onOpen(id)}
				onFocus={() => data.onFocus(id)}
			>
				{isFar ? <FarCard agent={agent} /> : <NearCard agent={agent} conflict={data.conflict} />}
			</button>
			<Handle type="source" position={Position.Right} className={css.port} isConnectable={data.canConnect} />
		</>
	);
});

function FarCard({ agent: { node, words } }: { readonly agent: Agent }) {
	return (
		<>
			<span className={cx(css.farLabel, css.cut)}>{firstLine(node.label, 40)}</span>
			<StateWord tone={words.tone} word={words.word} />
		</>
	);
}

function NearCard({ agent, conflict }: { readonly agent: Agent; readonly conflict: string | null }) {
	const { node, words, line } = agent;
	return (
		<>
			<span className={css.row}>
				<span className={cx(css.label, css.cut)}>{firstLine(node.label, 60)}</span>
				{node.alias != null && <span className={cx(css.alias, css.cut)}>{firstLine(node.alias, 32)}</span>}
				{node.inboxCount > 0 && (
					<span className={cx(css.inbox, css.push)} title="Inputs that wait for its turn">
						{node.inboxCount} in
					</span>
				)}
			</span>
			<span className={cx(css.role, css.cut)}>
				{firstLine(node.roleTemplate, 40)} · {firstLine(providerWord(node), 40)}
			</span>
			<span className={cx(css.state, (conflict ?? line) !== "" && css.short)} title={words.reason}>
				<StateWord tone={words.tone} word={words.word}>
					{words.reason}
				</StateWord>
			</span>
			<span className={css.live}>{conflict ?? line}</span>
			<Numbers agent={agent} />
		</>
	);
}

function Numbers({ agent: { node, words, lines } }: { readonly agent: Agent }) {
	return (
		<span className={cx(css.row, css.numbers)}>
			<span title={`${lines.files} files changed by its turns`}>
				<span className={css.added}>+{lines.added}</span> <span className={css.removed}>−{lines.removed}</span>
			</span>
			<span title="Tokens and cost of its turns">
				{formatTokens(node.usage.totalTokens)} tok · {formatCost(node.usage.costUsd)}
			</span>
			{words.since !== null && (
				<span className={css.push}>
					<Age since={words.since} />
				</span>
			)}
		</span>
	);
}

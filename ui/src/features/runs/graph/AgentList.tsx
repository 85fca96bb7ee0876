/** The agents by what they need, with their connections: the graph as text. Everything that the graph can do starts here too. */

import { memo, useRef } from "react";
import { IconButton } from "../../../components/Button";
import { cx } from "../../../components/cx";
import { type KeyBinding, listBindings, useKeys } from "../../../components/keys";
import { StateWord } from "../../../components/StateWord";
import type { Traffic } from "../../../model/handoffs";
import { formatCost, formatTokens } from "../../../model/quantity";
import { groupWord, NODE_GROUPS, providerWord } from "../../../model/run-words";
import { firstLine } from "../../../model/text-safety";
import { Age } from "./Age";
import css from "./AgentList.module.css";
import { useRun, useRunSource } from "./run-source";
import { type Agent, useAgent } from "./useAgent";
import type { AgentGroups } from "./useAgentGroups";
import type { GraphActions } from "./useRunScreen";

export interface AgentListProps {
	readonly groups: AgentGroups;
	readonly shown: ReadonlySet<string> | null;
	readonly traffic: Traffic | null;
	readonly conflicts: ReadonlyMap<string, string>;
	readonly selected: string | null;
	readonly actions: GraphActions;
}

export function AgentList({ groups, shown, traffic, conflicts, selected, actions }: AgentListProps) {
	const frame = useRef<HTMLDivElement>(null);
	useKeys("List of agents", [...listBindings(() => frame.current), ...agentBindings(actions)]);
	return (
		<div ref={frame} className={css.list}>
			{NODE_GROUPS.map((group) => {
				const ids = groups[group].filter((id) => shown === null || shown.has(id));
				if (ids.length === 0) return null;
				return (
					<section key={group} className={css.group} aria-label={groupWord(group)}>
						<h2>
							{groupWord(group)} · {ids.length}
						</h2>
						<ul>
							{ids.map((id) => (
								<AgentRow
									key={id}
									id={id}
									traffic={traffic}
									conflict={conflicts.get(id) ?? null}
									isSelected={id === selected}
									actions={actions}
								/>
							))}
						</ul>
					</section>
				);
			})}
		</div>
	);
}

function agentBindings(actions: GraphActions): KeyBinding[] {
	const onFocused = (act: (id: string) => void) => () => {
		const id = document.activeElement?.closest("[data-agent]")?.getAttribute("data-agent") ?? null;
		if (id !== null) act(id);
		return id !== null;
	};
	return [
		{ key: "c", does: "connect the agent with another one", run: onFocused((id) => actions.connect(id, null)) },
		{ key: "Delete", does: "delete the agent (asks)", run: onFocused(actions.askDelete) },
		{ key: "w", does: "why the agent does what it does", run: onFocused(actions.why) },
		{ key: ".", does: "what can be done with the agent", run: onFocused(actions.more) },
	];
}

interface AgentRowProps {
	readonly id: string;
	readonly traffic: Traffic | null;
	readonly conflict: string | null;
	readonly isSelected: boolean;
	readonly actions: GraphActions;
}

const AgentRow = memo(function AgentRow({ id, traffic, conflict, isSelected, actions }: AgentRowProps) {
	const agent = useAgent(id);
	const { isPast } = useRunSource();
	if (agent === null) return null;
	const { node, words, line } = agent;
	return (
		<li className={cx(css.item, css[words.tone], isSelected && css.selected)} data-agent={id}>
			<button type="button" data-item="" className={css.open} onClick={() => actions.openAgent(id)}>
				<span className={css.label}>{firstLine(node.label, 80)}</span>
				<span className={css.who}>
					{firstLine(node.roleTemplate, 40)} · {firstLine(providerWord(node), 40)}
				</span>
				<span className={css.state}>
					<StateWord tone={words.tone} word={words.word}>
						{words.reason}
						{words.since !== null && (
							<>
								{" · "}
								<Age since={words.since} />
							</>
						)}
					</StateWord>
				</span>
				{(conflict ?? line) !== "" && <span className={css.line}>{conflict ?? line}</span>}
			</button>
			<div className={css.aside}>
				{!isPast && (
					<IconButton
						label={`What can be done with ${firstLine(node.label, 40)}`}
						icon="more"
						onClick={() => actions.more(id)}
					/>
				)}
				<Numbers agent={agent} />
			</div>
			<Edges id={id} traffic={traffic} actions={actions} />
		</li>
	);
});

function Numbers({ agent: { node, lines } }: { readonly agent: Agent }) {
	return (
		<span className={css.numbers}>
			{node.inboxCount > 0 && `${node.inboxCount} in · `}+{lines.added} −{lines.removed} ·{" "}
			{formatTokens(node.usage.totalTokens)} tok · {formatCost(node.usage.costUsd)}
		</span>
	);
}

function Edges({ id, traffic, actions }: Pick<AgentRowProps, "id" | "traffic" | "actions">) {
	const edges = useRun((state) => state.edges);
	const nodes = useRun((state) => state.nodes);
	const mine = Object.values(edges).filter((edge) => edge.from === id);
	if (mine.length === 0) return null;
	return (
		<p className={css.edges}>
			hands to
			{mine.map((edge) => {
				const waiting = traffic?.get(edge.id)?.waiting ?? 0;
				return (
					<button key={edge.id} type="button" className={css.edge} onClick={() => actions.openEdge(edge.id)}>
						{firstLine(nodes[edge.to]?.label ?? "an agent that is gone", 40)}
						{waiting > 0 && ` (${waiting} waiting)`}
					</button>
				);
			})}
		</p>
	);
}

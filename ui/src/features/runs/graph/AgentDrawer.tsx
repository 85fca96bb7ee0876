/** An agent beside the graph: its state, what waits for you, its connections, and a message box. */

import { Link } from "wouter";
import { paths } from "../../../app/paths";
import { IconButton } from "../../../components/Button";
import { Facts } from "../../../components/Card";
import { Drawer } from "../../../components/Drawer";
import { RefChip } from "../../../components/refs/RefChip";
import { SafeText } from "../../../components/SafeText";
import { StateWord } from "../../../components/StateWord";
import { Time } from "../../../components/Time";
import { formatCost, formatNumberOf, formatTokens } from "../../../model/quantity";
import { formatRef } from "../../../model/refs";
import type { Approval, RunNode } from "../../../model/run";
import { providerWord } from "../../../model/run-words";
import { firstLine } from "../../../model/text-safety";
import { unknownWord } from "../../../model/unknown-word";
import { Age } from "./Age";
import { ChatBox } from "./ChatBox";
import css from "./Drawers.module.css";
import { useRun, useRunSource } from "./run-source";
import { type Agent, useAgent } from "./useAgent";
import { useAgentNames } from "./useAgentNames";
import type { GraphActions } from "./useRunScreen";

export interface AgentDrawerProps {
	readonly runId: string;
	readonly id: string;
	readonly conflict: string | null;
	readonly actions: GraphActions;
}

export function AgentDrawer({ runId, id, conflict, actions }: AgentDrawerProps) {
	const agent = useAgent(id);
	const { isPast } = useRunSource();
	if (agent === null) {
		return (
			<Drawer title="An agent that is not here" onClose={actions.close}>
				<p>It was deleted, or it belongs to another run.</p>
			</Drawer>
		);
	}
	const { node, words } = agent;
	const more = isPast ? undefined : (
		<IconButton label="What can be done with it" icon="more" onClick={() => actions.more(id)} />
	);
	return (
		<Drawer title={firstLine(node.label, 60)} onClose={actions.close} actions={more}>
			<div className={css.body}>
				<p>
					<StateWord tone={words.tone} word={words.word}>
						{words.reason}
						{words.since !== null && (
							<>
								{" · "}
								<Age since={words.since} />
							</>
						)}
					</StateWord>
				</p>
				{conflict !== null && <p className={css.warning}>{conflict}</p>}
				{agent.line !== "" && <p className={css.line}>{agent.line}</p>}
				<nav aria-label="Its pages" className={css.links}>
					<Link href={paths.agent(runId, id)}>Timeline</Link>
					<Link href={paths.agent(runId, id, "diffs")}>Diffs</Link>
					<Link href={paths.agent(runId, id, "prompt")}>Prompt</Link>
					<Link href={paths.agent(runId, id, "handoffs")}>Handoffs</Link>
					<Link href={paths.agent(runId, id, "settings")}>Settings</Link>
				</nav>
				{!isPast && <Approvals approvals={agent.approvals} />}
				<Facts facts={factsOf(agent)} />
				<Connections id={id} actions={actions} />
				{!isPast && <ChatBox runId={runId} agent={id} />}
			</div>
		</Drawer>
	);
}

function Approvals({ approvals }: { readonly approvals: readonly Approval[] }) {
	if (approvals.length === 0) return null;
	return (
		<section aria-label="Waits for you" className={css.waiting}>
			<h3>{formatNumberOf(approvals.length, "decision")} of yours</h3>
			<ul>
				{approvals.map(({ approvalId, context, createdAt }) => (
					<li key={approvalId}>
						<SafeText text={firstLine(context, 200)} /> · <Time at={createdAt} format="age" />{" "}
						<Link href={paths.inbox({ item: formatRef({ kind: "approval", id: approvalId }) })}>
							Answer in the inbox
						</Link>
					</li>
				))}
			</ul>
		</section>
	);
}

function factsOf({ node, lines }: Agent) {
	const { usage } = node;
	return [
		["Ref", <RefChip key="ref" to={{ kind: "node", id: node.id }} name={node.alias ?? firstLine(node.label, 40)} />],
		["Role", firstLine(node.roleTemplate, 60)],
		["Program", `${firstLine(providerWord(node), 60)} · ${programState(node)}`],
		["Works in", workspaceWords(node)],
		["Inbox", node.inboxCount === 0 ? "empty" : formatNumberOf(node.inboxCount, "input")],
		["Changed", `+${lines.added} −${lines.removed} in ${formatNumberOf(lines.files, "file")}`],
		["Used", `${formatTokens(usage.totalTokens)} tokens · ${formatCost(usage.costUsd)}`],
		["Made", <Time key="made" at={node.createdAt} />],
	] as const;
}

function programState({ connection }: RunNode): string {
	const status = connection?.status;
	switch (status) {
		case "connected":
			return "works";
		case "idle":
			return "runs, and waits";
		case "disconnected":
			return "does not run";
		case undefined:
			return "not started yet";
		default:
			return unknownWord(status);
	}
}

function workspaceWords({ workspace }: RunNode): string {
	if (workspace == null) return "not chosen before its first turn";
	if (workspace.kind === "shared") return "the directory of the run, shared";
	return workspace.branch == null
		? "a worktree of its own"
		: `a worktree of its own, branch ${firstLine(workspace.branch, 80)}`;
}

function Connections({ id, actions }: { readonly id: string; readonly actions: GraphActions }) {
	const edges = useRun((state) => state.edges);
	const { isPast } = useRunSource();
	const names = useAgentNames();
	const mine = Object.values(edges).filter(({ from, to }) => from === id || to === id);
	return (
		<section aria-label="Connections">
			<h3>Connections</h3>
			{mine.length === 0 && <p className={css.soft}>It can hand work to nobody, and nobody to it.</p>}
			<ul>
				{mine.map((edge) => {
					const other = edge.from === id ? edge.to : edge.from;
					const arrow = edge.bidirectional ? "both ways with" : edge.from === id ? "to" : "from";
					return (
						<li key={edge.id}>
							<button type="button" className={css.link} onClick={() => actions.openEdge(edge.id)}>
								{firstLine(edge.label, 30) || edge.type} {arrow} {names.all.get(other) ?? "an agent that is gone"}
							</button>
						</li>
					);
				})}
			</ul>
			{!isPast && (
				<button type="button" className={css.link} onClick={() => actions.connect(id, null)}>
					Connect it with another agent
				</button>
			)}
		</section>
	);
}

/** The settings of an agent, its session, and what can be done to both. */

import { Card, Facts } from "../../../components/Card";
import { SafeText } from "../../../components/SafeText";
import { StateWord } from "../../../components/StateWord";
import { Time } from "../../../components/Time";
import { formatCost, formatTokens } from "../../../model/quantity";
import type { RunNode } from "../../../model/run";
import { unknownWord } from "../../../model/unknown-word";
import { AgentDangers } from "./AgentDangers";
import { AgentForm } from "./AgentForm";
import css from "./Settings.module.css";

export function AgentSettings({ node }: { readonly node: RunNode }) {
	return (
		<div className={css.columns}>
			<Card title="Settings">
				<AgentForm node={node} />
			</Card>
			<div className={css.side}>
				<Card title="Now">
					<Facts facts={factsOf(node)} />
				</Card>
				<Card title="Program and session">
					<AgentDangers node={node} />
				</Card>
			</div>
		</div>
	);
}

function factsOf(node: RunNode): [string, React.ReactNode][] {
	const { connection, session, workspace, usage, budget } = node;
	return [
		["Id", <code key="id">{node.id}</code>],
		["Workspace", <WorkspaceWords key="workspace" workspace={workspace ?? null} />],
		["Program", connection == null ? "not started" : <ConnectionWords key="program" connection={connection} />],
		["Session", session.sessionId == null ? "none yet" : <SafeText key="session" text={session.sessionId} />],
		["Used", `${formatTokens(usage.totalTokens)} tokens, ${formatCost(usage.costUsd)}`],
		["Budget", budgetWords(budget ?? null)],
		["Made", <Time key="made" at={node.createdAt} />],
		...(node.person == null
			? []
			: ([["Person", <SafeText key="person" text={node.person} />]] as [string, React.ReactNode][])),
	];
}

function WorkspaceWords({ workspace }: { readonly workspace: RunNode["workspace"] | null }) {
	if (workspace == null) return "chosen when its first turn begins, and never changed";
	if (workspace.kind === "shared") return "the run’s directory, which others may share";
	return workspace.branch == null ? (
		"a worktree of its own, made for its next turn"
	) : (
		<>
			a worktree of its own, on <SafeText text={workspace.branch} />
		</>
	);
}

function ConnectionWords({ connection }: { readonly connection: NonNullable<RunNode["connection"]> }) {
	const since = connection.lastOutputAt ?? connection.lastHeartbeatAt;
	const about =
		since == null ? undefined : (
			<>
				last output <Time at={since} />
			</>
		);
	switch (connection.status) {
		case "connected":
			return (
				<StateWord tone="running" word="works">
					{about}
				</StateWord>
			);
		case "idle":
			return (
				<StateWord tone="neutral" word="rests">
					{about}
				</StateWord>
			);
		case "disconnected":
			return (
				<StateWord tone="neutral" word="not running">
					the next prompt starts it
				</StateWord>
			);
		default:
			return (
				<StateWord tone="neutral" word={unknownWord(connection.status)}>
					{about}
				</StateWord>
			);
	}
}

function budgetWords(budget: RunNode["budget"] | null): string {
	const { tokens, costUsd } = budget ?? {};
	const parts = [
		...(tokens == null ? [] : [`${formatTokens(tokens)} tokens`]),
		...(costUsd == null ? [] : [formatCost(costUsd)]),
	];
	return parts.length === 0 ? "none of its own" : parts.join(", ");
}

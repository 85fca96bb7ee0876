/** The header of a turn in a timeline: how it stands, inputs, mode, cost and what it changed. */

import { Link } from "wouter";
import { paths } from "../../../app/paths";
import { DiffCounts } from "../../../components/DiffView";
import { RefChip } from "../../../components/refs/RefChip";
import { StateWord } from "../../../components/StateWord";
import { Duration, Time } from "../../../components/Time";
import { type AgentTurn, turnWords } from "../../../model/agent-turns";
import { formatCost, formatNumberOf, formatTokens } from "../../../model/quantity";
import { modeWords } from "../../../model/run-words";
import { parseTime } from "../../../model/time";
import css from "./Timeline.module.css";

export function TurnHeader({ runId, turn }: { readonly runId: string; readonly turn: AgentTurn }) {
	const { tone, word } = turnWords(turn.status);
	return (
		<header className={css.turn}>
			<Link href={paths.agentTurn(runId, turn.id)} className={css.turnLink} data-item="" data-ref={`turn:${turn.id}`}>
				Turn {turn.id.slice(0, 8)}
			</Link>
			<StateWord tone={tone} word={word}>
				<Time at={turn.startedAt} />
			</StateWord>
			<span className={css.turnFacts}>
				<TurnFacts turn={turn} />
			</span>
			<DiffBadge runId={runId} turn={turn} />
		</header>
	);
}

/** "2 inputs · interactive, implementation · delta prompt · 1.2 s · 5.8 k tokens · $0.02". */
export function TurnFacts({ turn }: { readonly turn: AgentTurn }) {
	const begun = parseTime(turn.startedAt);
	const ended = turn.endedAt === null ? null : parseTime(turn.endedAt);
	return (
		<>
			{!turn.isWhole && <span>began before what is shown</span>}
			{turn.isWhole && <span>{formatNumberOf(turn.consumed.length, "input")}</span>}
			{turn.globalMode !== null && <span>{modeWords(turn.mode, turn.globalMode)}</span>}
			{turn.promptKind !== null && <span>{turn.promptKind} prompt</span>}
			{turn.attempt > 1 && <span>attempt {turn.attempt}</span>}
			{begun !== null && ended !== null && turn.isWhole && <Duration ms={ended - begun} />}
			{turn.tokens > 0 && <span>{formatTokens(turn.tokens)} tokens</span>}
			{turn.costUsd > 0 && <span>{formatCost(turn.costUsd)}</span>}
		</>
	);
}

/** What a turn changed, as a link to its diff; "no changes" is said too. */
export function DiffBadge({ runId, turn }: { readonly runId: string; readonly turn: AgentTurn }) {
	const metadata = turn.diff?.metadata;
	if (turn.diff === null || metadata == null) return null;
	if (metadata.filesChanged.length === 0) return <span className={css.soft}>no changes</span>;
	const href = turn.nodeId === null ? paths.agentTurn(runId, turn.id) : diffPath(runId, turn.nodeId, turn.id);
	return (
		<span className={css.badge}>
			<Link href={href}>{formatNumberOf(metadata.filesChanged.length, "file")}</Link>
			<DiffCounts added={metadata.added} removed={metadata.removed} />
			{metadata.violation != null && metadata.violation.length > 0 && (
				<StateWord tone="waiting" word="not allowed">
					{formatNumberOf(metadata.violation.length, "file")}
				</StateWord>
			)}
			<RefChip to={{ kind: "artifact", id: turn.diff.id }} name="diff" />
		</span>
	);
}

/** An agent's diffs with this turn chosen. */
export function diffPath(runId: string, nodeId: string, turnId: string): string {
	return paths.agent(runId, nodeId, "diffs", { turn: turnId });
}

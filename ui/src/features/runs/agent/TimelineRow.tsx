/** One row of a timeline. */

import { memo } from "react";
import { Link } from "wouter";
import { paths } from "../../../app/paths";
import { Markdown } from "../../../components/Markdown";
import { RefChip } from "../../../components/refs/RefChip";
import { SafeText } from "../../../components/SafeText";
import { Time } from "../../../components/Time";
import { formatNumberOf } from "../../../model/quantity";
import type { RunNode } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";
import type { EndRow, HandoffRow, MessageRow, NoticeRow, TextRow, TranscriptRow } from "../../../model/transcript";
import { AgentChip } from "./AgentChip";
import { HandoffBody, HandoffState } from "./HandoffView";
import css from "./Timeline.module.css";
import { ToolCallView } from "./ToolCallView";
import { TurnHeader } from "./TurnHeader";

export interface TimelineRowProps {
	readonly runId: string;
	readonly row: TranscriptRow;
	readonly nodes: Readonly<Record<string, RunNode>>;
	readonly isOpen: boolean;
	/** The state of a row's details lives above the list, which forgets rows that are out of sight. */
	readonly onToggle: (key: string, isOpen: boolean) => void;
}

export const TimelineRow = memo(function TimelineRow({ runId, row, nodes, isOpen, onToggle }: TimelineRowProps) {
	const toggle = (open: boolean) => onToggle(row.key, open);
	switch (row.kind) {
		case "turn":
			return <TurnHeader runId={runId} turn={row.turn} />;
		case "text":
			return row.voice === "answer" ? <Answer row={row} /> : <Thinking row={row} isOpen={isOpen} onToggle={toggle} />;
		case "tool":
			return <ToolCallView runId={runId} row={row} isOpen={isOpen} onToggle={toggle} />;
		case "message":
			return <Message row={row} />;
		case "handoff":
			return <Handoff row={row} nodes={nodes} isOpen={isOpen} onToggle={toggle} />;
		case "artifact":
			return (
				<p className={css.line}>
					Made <RefChip to={{ kind: "artifact", id: row.artifact.id }} name={row.artifact.name} /> <Time at={row.at} />
				</p>
			);
		case "notice":
			return <NoticeLine row={row} />;
		case "end":
			return <End row={row} />;
	}
});

function Answer({ row }: { readonly row: TextRow }) {
	return (
		<div className={css.answer} data-item="" tabIndex={-1}>
			<Markdown text={row.text} />
			{row.state === "streaming" && <p className={css.soft}>… still writing</p>}
			{row.state === "interrupted" && <p className={css.soft}>The text ends here: it was interrupted.</p>}
		</div>
	);
}

interface FoldedProps<Row> {
	readonly row: Row;
	readonly isOpen: boolean;
	readonly onToggle: (isOpen: boolean) => void;
}

function Thinking({ row, isOpen, onToggle }: FoldedProps<TextRow>) {
	return (
		<details className={css.thinking} open={isOpen} onToggle={(event) => onToggle(event.currentTarget.open)}>
			<summary data-item="">
				{row.state === "streaming" ? "Thinking" : "Thought"}{" "}
				<span className={css.soft}>{!isOpen && firstLine(row.text, 100)}</span>
			</summary>
			{isOpen && <Markdown text={row.text} />}
		</details>
	);
}

function Message({ row }: { readonly row: MessageRow }) {
	const { message, readBy } = row;
	return (
		<section className={css.input} data-item="" data-ref={`message:${message.id}`} tabIndex={-1}>
			<p className={css.inputHead}>
				<strong>{message.role === "system" ? "A note of the server" : "You"}</strong>
				{message.interrupt && <span>interrupts</span>}
				<Time at={row.at} />
				{readBy === null && <span className={css.waiting}>▲ waits for the next turn</span>}
				<RefChip to={{ kind: "message", id: message.id }} />
			</p>
			<Markdown text={message.content} />
		</section>
	);
}

function Handoff({ row, nodes, isOpen, onToggle }: FoldedProps<HandoffRow> & Pick<TimelineRowProps, "nodes">) {
	const { envelope, direction } = row;
	const other = direction === "in" ? envelope.fromNodeId : envelope.toNodeId;
	const words = { in: "Handoff from", out: "Handoff to", self: "The server to" }[direction];
	return (
		<section className={css.input} data-item="" data-ref={`envelope:${envelope.id}`} tabIndex={-1}>
			<p className={css.inputHead}>
				<strong>{words}</strong>
				<AgentChip id={other} nodes={nodes} />
				<Time at={row.at} />
				<HandoffState state={row.state} />
				<RefChip to={{ kind: "envelope", id: envelope.id }} />
			</p>
			<HandoffBody envelope={envelope} isOpen={isOpen} onToggle={onToggle} />
		</section>
	);
}

function NoticeLine({ row }: { readonly row: NoticeRow }) {
	return (
		<p className={css.line}>
			<NoticeWords row={row} /> <Time at={row.at} />
		</p>
	);
}

function NoticeWords({ row: { notice } }: { readonly row: NoticeRow }) {
	switch (notice.kind) {
		case "silence":
			return "The program has printed nothing for a while.";
		case "claim":
			return (
				<>
					Claims that the run is complete: <SafeText text={notice.summary} />
				</>
			);
		case "new-session":
			return "A new session began: the program knows only what its next prompt says.";
		case "workspace":
			return notice.workspace.kind === "shared" ? (
				"Works in the run’s directory."
			) : (
				<>
					Works in a worktree of its own
					{notice.workspace.branch != null && (
						<>
							, on the branch{" "}
							<code>
								<SafeText text={notice.workspace.branch} />
							</code>
						</>
					)}
					.
				</>
			);
	}
}

function End({ row }: { readonly row: EndRow }) {
	const isFailed = row.status === "turn.failed";
	return (
		<p className={isFailed ? css.failed : css.line}>
			{isFailed ? "✕ The turn failed" : "The turn was interrupted"}
			{row.detail !== null && (
				<>
					: <SafeText text={row.detail} escapes="strip" />
				</>
			)}
			. {row.requeued > 0 && `${formatNumberOf(row.requeued, "input")} went back into the inbox.`} <Time at={row.at} />
		</p>
	);
}

/** A link to a turn by its short name. */
export function TurnLink({ runId, turnId }: { readonly runId: string; readonly turnId: string }) {
	return <Link href={paths.agentTurn(runId, turnId)}>turn {turnId.slice(0, 8)}</Link>;
}

/** A tool call: one line with its result and time; opened, its arguments and its output. */

import { JsonView } from "../../../components/JsonView";
import { RefChip } from "../../../components/refs/RefChip";
import { MachineText, SafeText } from "../../../components/SafeText";
import { StateWord } from "../../../components/StateWord";
import { Duration } from "../../../components/Time";
import { firstLine } from "../../../model/text-safety";
import type { ToolRow } from "../../../model/transcript";
import { ApprovalNote } from "./ApprovalNote";
import { LongText } from "./LongText";
import css from "./Timeline.module.css";
import { commandOf, toolSubject, writtenFile } from "./tool-words";

export interface ToolCallViewProps {
	readonly runId: string;
	readonly row: ToolRow;
	readonly isOpen: boolean;
	readonly onToggle: (isOpen: boolean) => void;
}

export function ToolCallView({ runId, row, isOpen, onToggle }: ToolCallViewProps) {
	return (
		<div className={css.tool}>
			<details open={isOpen} onToggle={(event) => onToggle(event.currentTarget.open)}>
				<summary className={css.toolLine} data-item="">
					<ToolResultWord row={row} />
					<span className={css.toolName}>
						<SafeText text={row.tool.name} />
					</span>
					<code className={css.toolSubject}>
						<SafeText text={toolSubject(row.tool.args)} />
					</code>
					{!isOpen && <code className={css.toolOutcome}>{outcomeOf(row)}</code>}
					{row.durationMs !== null && (
						<span className={css.soft}>
							<Duration ms={row.durationMs} />
						</span>
					)}
				</summary>
				{isOpen && <ToolDetails row={row} />}
			</details>
			{row.asked !== null && <ApprovalNote runId={runId} asked={row.asked} />}
		</div>
	);
}

function ToolResultWord({ row }: { readonly row: ToolRow }) {
	switch (row.state) {
		case "proposed":
			return <StateWord tone="neutral" word="proposed" />;
		case "asking":
			return <StateWord tone="waiting" word="waits for you" />;
		case "running":
			return <StateWord tone="running" word="running" />;
		case "done":
			return row.result?.ok === true ? (
				<StateWord tone="done" word="done" />
			) : (
				<StateWord tone="failed" word={row.asked?.resolution?.status === "denied" ? "denied" : "failed"} />
			);
	}
}

function outcomeOf(row: ToolRow): string {
	return firstLine(row.error ?? row.result?.output ?? "", 120);
}

function ToolDetails({ row }: { readonly row: ToolRow }) {
	const { args } = row.tool;
	const command = commandOf(args);
	const file = writtenFile(args);
	return (
		<div className={css.toolBody}>
			{command !== null && <MachineText text={command} escapes="show" />}
			{file !== null && <LongText text={file.content} />}
			{command === null && file === null && <JsonView value={args} label="Arguments" />}
			{row.error !== null && (
				<div className={css.failed}>
					<LongText text={row.error} />
				</div>
			)}
			<ToolOutput row={row} />
		</div>
	);
}

function ToolOutput({ row: { result } }: { readonly row: ToolRow }) {
	if (result === null) return <p className={css.soft}>No result yet.</p>;
	const { output, artifactId, truncated } = result;
	return (
		<>
			{output == null || output === "" ? (
				<p className={css.soft}>It printed nothing.</p>
			) : (
				<div className={css.output}>
					<LongText text={output} />
				</div>
			)}
			{artifactId != null && (
				<p className={css.line}>
					{truncated === true ? "This is only the beginning. All of it: " : "The output as a file: "}
					<RefChip to={{ kind: "artifact", id: artifactId }} name="tool-output.txt" />
				</p>
			)}
		</>
	);
}

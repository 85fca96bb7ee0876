/** What was brought into the directory, newest first, and a commit message for the newest. */

import { type ReactNode, useState } from "react";
import { Card } from "../../../components/Card";
import { CommandLine } from "../../../components/EmptyState";
import { ErrorNote } from "../../../components/ErrorNote";
import { RefChip } from "../../../components/refs/RefChip";
import { SafeText } from "../../../components/SafeText";
import { Skeleton } from "../../../components/Skeleton";
import { StateWord } from "../../../components/StateWord";
import { Time } from "../../../components/Time";
import { type AppliedReport, commitMessage, type RunChanges, readApplied } from "../../../model/changes";
import { formatNumberOf } from "../../../model/quantity";
import type { Artifact, RunState } from "../../../model/run";
import { inCreationOrder } from "../../../model/run-words";
import { firstLine } from "../../../model/text-safety";
import { useArtifactText } from "../agent/artifacts";
import css from "./Changes.module.css";
import { FileNames } from "./FileNames";

interface AppliedPartProps {
	readonly state: RunState;
	readonly changes: RunChanges;
	/** The answer to the apply of this page, until it arrives as a record too. */
	readonly answer: AppliedReport | null;
}

export function AppliedPart({ state, changes, answer }: AppliedPartProps) {
	const [before] = useState(changes.applies.length);
	const newestFirst = changes.applies.toReversed();
	const isRecorded = changes.applies.length > before;
	if (newestFirst.length === 0 && answer === null) return null;
	return (
		<Card title="Applied">
			{answer !== null && !isRecorded && <Applied state={state} report={answer} isNewest />}
			{newestFirst.map((artifact, at) => (
				<RecordedApply key={artifact.id} state={state} artifact={artifact} isNewest={at === 0} />
			))}
		</Card>
	);
}

interface RecordedApplyProps {
	readonly state: RunState;
	readonly artifact: Artifact;
	readonly isNewest: boolean;
}

function RecordedApply({ state, artifact, isNewest }: RecordedApplyProps) {
	const { data, error, isPending, refetch } = useArtifactText(artifact);
	if (isPending) return <Skeleton lines={2} />;
	if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />;
	const report = readApplied(data);
	if (report === null) return <p>The answer of this apply cannot be read.</p>;
	return (
		<Applied state={state} report={report} isNewest={isNewest}>
			<Time at={artifact.createdAt} />
			<RefChip to={{ kind: "artifact", id: artifact.id }} name={artifact.name} />
		</Applied>
	);
}

interface AppliedProps {
	readonly state: RunState;
	readonly report: AppliedReport;
	readonly isNewest: boolean;
	readonly children?: ReactNode;
}

function Applied({ state, report: { applied, verified }, isNewest, children }: AppliedProps) {
	return (
		<div className={css.applied}>
			<p className={css.facts}>
				<strong>{applied.length === 0 ? "Nothing new" : formatNumberOf(applied.length, "file")}</strong>
				<StateWord tone={verified ? "done" : "waiting"} word={verified ? "verified" : "not verified"}>
					{verified ? "the commands passed on exactly this tree" : "no verification passed on exactly this tree"}
				</StateWord>
				{children}
			</p>
			<FileNames paths={applied} />
			{isNewest && applied.length > 0 && <Suggestion state={state} files={applied} />}
		</div>
	);
}

/** The work is in the directory and not committed: a person does that. */
function Suggestion({ state, files }: { readonly state: RunState; readonly files: readonly string[] }) {
	const { run } = state;
	if (run === null) return null;
	const nodes = inCreationOrder(state.nodes).filter(
		({ capabilities }) => capabilities.writeCode || capabilities.writeDocs,
	);
	const message = commitMessage(
		run,
		nodes.map(({ label, summary }) => ({ label: firstLine(label, 40), summary: firstLine(summary, 100) })),
		files,
	);
	return (
		<>
			<p>
				The files are in <SafeText text={run.cwd ?? "the directory"} />, on the branch that you have there, and not
				committed. A commit message for them:
			</p>
			<CommandLine command={message} />
		</>
	);
}

/** What the agents of a run changed together: by agent and file, what was claimed and proved, and bringing it home. */

import { useMemo } from "react";
import { useLiveRun } from "../../api/window";
import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";
import { SafeText } from "../../components/SafeText";
import type { ScreenProps } from "../../components/screen";
import { type RunChanges, runChanges } from "../../model/changes";
import { formatNumberOf } from "../../model/quantity";
import type { RunState } from "../../model/run";
import { RunGate, runCrumbs } from "./agent/RunGate";
import { AppliedPart } from "./changes/AppliedPart";
import css from "./changes/Changes.module.css";
import { ChangesActions } from "./changes/ChangesActions";
import { Contributions } from "./changes/Contributions";
import { OverlapNote } from "./changes/OverlapNote";
import { ProofPart } from "./changes/ProofPart";
import { useApply } from "./changes/useApply";

export default function ChangesScreen({ params }: ScreenProps<"run">) {
	const view = useLiveRun(params.run);
	const state = view.status === "shown" ? view.state : null;
	const nodes = state?.nodes;
	const artifacts = state?.artifacts;
	const changes = useMemo(
		() => (nodes === undefined || artifacts === undefined ? null : runChanges({ nodes, artifacts })),
		[nodes, artifacts],
	);
	return (
		<Page title="Changes" crumbs={runCrumbs(params.run, state)}>
			<RunGate view={view} missing={null}>
				{state !== null && changes !== null && <ChangesContent state={state} changes={changes} />}
			</RunGate>
		</Page>
	);
}

function ChangesContent({ state, changes }: { readonly state: RunState; readonly changes: RunChanges }) {
	const apply = useApply(state.id);
	const isEmpty = changes.contributions.length === 0 && changes.applies.length === 0;
	return (
		<div className={css.page}>
			<BaseLine state={state} changes={changes} />
			<ChangesActions state={state} changes={changes} apply={apply} />
			<OverlapNote changes={changes} />
			<ProofPart state={state} changes={changes} />
			{isEmpty ? (
				<EmptyState title="No changes yet">
					When a turn of an agent has changed files, they are listed here, with the agent and the turn that changed
					them.
				</EmptyState>
			) : (
				<Contributions state={state} contributions={changes.contributions} />
			)}
			<AppliedPart state={state} changes={changes} answer={apply.data ?? null} />
		</div>
	);
}

function BaseLine({ state, changes }: { readonly state: RunState; readonly changes: RunChanges }) {
	const cwd = state.run?.cwd ?? null;
	if (cwd === null) return <p>This run has no directory, so there is nothing to apply.</p>;
	const shared = changes.contributions.filter(({ place }) => place === "shared");
	return (
		<p>
			Base:{" "}
			<code>
				<SafeText text={cwd} />
			</code>{" "}
			as it is now. {formatNumberOf(changes.waiting.length, "file")} {changes.waiting.length === 1 ? "waits" : "wait"}{" "}
			in worktrees
			{shared.length > 0 &&
				`; ${formatNumberOf(shared.length, "agent")} ${shared.length === 1 ? "works" : "work"} in the directory itself`}
			.
		</p>
	);
}

/** What every page of a run shows while the run is not there: loading, failed, not found, deleted. */

import type { ReactNode } from "react";
import { Link } from "wouter";
import { isNotFound } from "../../../api/errors";
import type { LiveRunView } from "../../../api/live-run";
import { useLiveRunHandle } from "../../../api/window";
import { paths } from "../../../app/paths";
import { EmptyState } from "../../../components/EmptyState";
import { ErrorNote } from "../../../components/ErrorNote";
import type { Crumb } from "../../../components/page-store";
import { SafeText } from "../../../components/SafeText";
import { Skeleton } from "../../../components/Skeleton";
import type { RunState } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";

export interface RunGateProps {
	readonly view: LiveRunView;
	/** The part of the run that the page is about, if the run does not have it. */
	readonly missing: { readonly what: string; readonly run: string } | null;
	readonly children: ReactNode;
}

export function RunGate({ view, missing, children }: RunGateProps) {
	switch (view.status) {
		case "loading":
			return <Skeleton lines={8} />;
		case "failed":
			return isNotFound(view.error) ? (
				<EmptyState title="Not found" action={<Link href={paths.runs()}>All runs</Link>}>
					This server has no such run. It may have been deleted.
				</EmptyState>
			) : (
				<RunFailed error={view.error} run={missing?.run ?? null} />
			);
		case "shown":
			if (view.state.isDeleted) {
				return (
					<EmptyState title="This run was deleted" action={<Link href={paths.runs()}>All runs</Link>}>
						Its agents ended and its files were removed. Its records stay in the log.
					</EmptyState>
				);
			}
			return missing === null ? (
				children
			) : (
				<EmptyState title="Not found" action={<Link href={paths.run(missing.run)}>The run</Link>}>
					<SafeText text={missing.what} /> is not in this run. It may have been deleted.
				</EmptyState>
			);
	}
}

function RunFailed({ error, run }: { readonly error: unknown; readonly run: string | null }) {
	return run === null ? <ErrorNote error={error} /> : <RetriedRun error={error} run={run} />;
}

function RetriedRun({ error, run }: { readonly error: unknown; readonly run: string }) {
	const live = useLiveRunHandle(run);
	return <ErrorNote error={error} onRetry={live.retry} />;
}

/** Runs › the run. */
export function runCrumbs(run: string, state: RunState | null): Crumb[] {
	const title = firstLine(state?.run?.title ?? run.slice(0, 8), 60);
	return [
		{ label: "Runs", href: paths.runs() },
		{ label: title, href: paths.run(run) },
	];
}

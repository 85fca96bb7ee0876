import { useMemo, useSyncExternalStore } from "react";
import { isNotFound } from "../../api/errors";
import { useLiveRunHandle } from "../../api/window";
import { paths } from "../../app/paths";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import { RunView } from "./graph/RunView";
import { liveSource, RunSourceContext } from "./graph/run-source";

/** A run: its graph of agents, live. */
export default function RunScreen({ params }: ScreenProps<"run">) {
	const run = useLiveRunHandle(params.run);
	const source = useMemo(() => liveSource(run), [run]);
	const status = useSyncExternalStore(run.subscribe, () => run.view().status);
	if (status === "shown") {
		return (
			<RunSourceContext value={source}>
				<RunView runId={params.run} />
			</RunSourceContext>
		);
	}
	const view = run.view();
	const error = view.status === "failed" ? view.error : null;
	return (
		<Page title={`Run ${params.run.slice(0, 8)}`} crumbs={[{ label: "Runs", href: paths.runs() }]}>
			{error === null && <Skeleton lines={8} />}
			{error !== null && isNotFound(error) && (
				<EmptyState title="There is no such run">
					<code>run:{params.run}</code> is not on this server. It may have been deleted.
				</EmptyState>
			)}
			{error !== null && !isNotFound(error) && <ErrorNote error={error} onRetry={run.retry} />}
		</Page>
	);
}

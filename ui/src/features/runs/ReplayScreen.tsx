import { isNotFound } from "../../api/errors";
import { paths } from "../../app/paths";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import { RunSourceContext } from "./graph/run-source";
import { ReplayView } from "./replay/ReplayView";
import { useReplay } from "./replay/useReplay";

/** A run at any moment of its log. */
export default function ReplayScreen({ params }: ScreenProps<"run">) {
	const replay = useReplay(params.run);
	if (replay.log.events.length > 0) {
		return (
			<RunSourceContext value={replay.source}>
				<ReplayView runId={params.run} replay={replay} />
			</RunSourceContext>
		);
	}
	const crumbs = [
		{ label: "Runs", href: paths.runs() },
		{ label: params.run.slice(0, 8), href: paths.run(params.run) },
	];
	return (
		<Page title="Replay" crumbs={crumbs}>
			{replay.status === "loading" && <Skeleton lines={8} />}
			{replay.status === "failed" && isNotFound(replay.error) && (
				<EmptyState title="There is no such run">
					<code>run:{params.run}</code> is not on this server. It may have been deleted.
				</EmptyState>
			)}
			{replay.status === "failed" && !isNotFound(replay.error) && (
				<ErrorNote error={replay.error} onRetry={replay.retry} />
			)}
		</Page>
	);
}

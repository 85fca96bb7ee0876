import { useQuery } from "@tanstack/react-query";
import { isNotFound } from "../../api/errors";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { paths } from "../../app/paths";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import type { Schema } from "../../model/schema";
import { RunTabs } from "./graph/RunTabs";
import { WaitList } from "./waits/WaitList";

/** Why nothing happens: who waits for whom, since when, root causes first. */
export default function RunWhyScreen({ params }: ScreenProps<"run">) {
	const path = { run_id: params.run };
	const why = useQuery({
		queryKey: keys.run(params.run, "why"),
		queryFn: ({ signal }) => answer(api.GET("/api/runs/{run_id}/why", { params: { path }, signal })),
	});
	const run = useQuery({
		queryKey: keys.run(params.run, "snapshot"),
		queryFn: async ({ signal }) => (await answer(api.GET("/api/runs/{run_id}", { params: { path }, signal }))).run,
	});
	const error = why.error ?? run.error;
	const title = run.data?.title;
	const crumbs = [
		{ label: "Runs", href: paths.runs() },
		{ label: title ?? params.run.slice(0, 8), href: paths.run(params.run) },
	];
	return (
		<Page title="Why is nothing happening?" crumbs={crumbs} bar={<RunTabs runId={params.run} current="why" />}>
			{error === null && (why.data === undefined || run.data === undefined) && <Skeleton lines={6} />}
			{error !== null && isNotFound(error) && (
				<EmptyState title="There is no such run">
					<code>run:{params.run}</code> is not on this server. It may have been deleted.
				</EmptyState>
			)}
			{error !== null && !isNotFound(error) && <ErrorNote error={error} onRetry={() => void why.refetch()} />}
			{why.data !== undefined && run.data !== undefined && (
				<WaitList graph={why.data} run={run.data satisfies Schema<"RunView">} />
			)}
		</Page>
	);
}

/** A run at one moment of its log: the same graph or list as live, without anything to do but to fork. */

import { lazy, Suspense, useState } from "react";
import { useActionBlock } from "../../../api/connection";
import { paths } from "../../../app/paths";
import { Button } from "../../../components/Button";
import { ErrorNote } from "../../../components/ErrorNote";
import { Page } from "../../../components/Page";
import { Skeleton } from "../../../components/Skeleton";
import { useQueryParam } from "../../../components/useQueryParam";
import { trafficOf } from "../../../model/handoffs";
import { formatCount } from "../../../model/quantity";
import { firstLine } from "../../../model/text-safety";
import { AgentDrawer } from "../graph/AgentDrawer";
import { AgentList } from "../graph/AgentList";
import { EdgeDrawer } from "../graph/EdgeDrawer";
import { RunBar } from "../graph/RunBar";
import { RunState } from "../graph/RunState";
import { useRun } from "../graph/run-source";
import { countOf, useAgentGroups, useShown } from "../graph/useAgentGroups";
import { useAgentNames } from "../graph/useAgentNames";
import { readFilter, useRunScreen } from "../graph/useRunScreen";
import { useRunViewKind } from "../graph/useRunViewKind";
import { EventList } from "./EventList";
import { ForkDialog } from "./ForkDialog";
import css from "./Replay.module.css";
import { Scrubber } from "./Scrubber";
import type { Replay } from "./useReplay";

const RunGraph = lazy(() => import("../graph/RunGraph"));
const NO_CONFLICTS: ReadonlyMap<string, string> = new Map();

export function ReplayView({ runId, replay }: { readonly runId: string; readonly replay: Replay }) {
	const { log, pages, seq, goTo, status } = replay;
	const [isForking, setForking] = useState(false);
	const block = useActionBlock();
	const title = useRun((state) => state.run?.title ?? "");
	const groups = useAgentGroups();
	const names = useAgentNames();
	const name = firstLine(title, 120) || `Run ${runId.slice(0, 8)}`;
	const crumbs = [
		{ label: "Runs", href: paths.runs() },
		{ label: name, href: paths.run(runId) },
	];
	const view = useRunViewKind();
	return (
		<Page
			title="Replay"
			crumbs={crumbs}
			aside={<RunState groups={groups} />}
			actions={
				<Button
					icon="fork"
					blocked={block ?? (seq === 0 ? "There is no event yet" : null)}
					onClick={() => setForking(true)}
				>
					{`Fork from event ${formatCount(seq)}`}
				</Button>
			}
			bar={<RunBar runId={runId} groups={groups} view={view} tab="replay" />}
			isFull
		>
			<div className={css.body}>
				<Scrubber log={log} seq={seq} goTo={goTo} />
				{status === "loading" && (
					<p className={css.note}>Reading the log: {formatCount(log.lastSeq)} events so far …</p>
				)}
				{replay.status === "failed" && (
					<ErrorNote context="The log is not complete here." error={replay.error} onRetry={replay.retry} />
				)}
				<div className={css.moment}>
					<div className={css.picture}>
						<Picture runId={runId} view={view} agents={countOf(groups)} />
					</div>
					<EventList log={log} pages={pages} seq={seq} names={names.all} goTo={goTo} />
				</div>
			</div>
			{isForking && <ForkDialog runId={runId} seq={seq} title={name} onClose={() => setForking(false)} />}
		</Page>
	);
}

interface PictureProps {
	readonly runId: string;
	readonly view: "graph" | "list";
	readonly agents: number;
}

function Picture({ runId, view, agents }: PictureProps) {
	const { agent, edge, actions } = useRunScreen(runId);
	const [show] = useQueryParam("show");
	const groups = useAgentGroups();
	const shown = useShown(groups, readFilter(show));
	const edges = useRun((state) => state.edges);
	const envelopes = useRun((state) => state.envelopes);
	const traffic = trafficOf(edges, envelopes);
	const shared = { shown, traffic, conflicts: NO_CONFLICTS, actions };
	if (agents === 0) return <p className={css.note}>The run has no agent at this moment.</p>;
	return (
		<>
			{view === "graph" ? (
				<Suspense fallback={<Skeleton label="Loading the graph" lines={6} />}>
					<RunGraph runId={runId} selectedAgent={agent} selectedEdge={edge} {...shared} />
				</Suspense>
			) : (
				<AgentList groups={groups} selected={agent} {...shared} />
			)}
			{agent !== null && <AgentDrawer key={agent} runId={runId} id={agent} conflict={null} actions={actions} />}
			{edge !== null && (
				<EdgeDrawer key={edge} runId={runId} id={edge} traffic={traffic} actions={actions} onDelete={actions.close} />
			)}
		</>
	);
}

/** A live run: its agents as a graph or as a list, the details of what is chosen, and a message box. */

import { lazy, Suspense } from "react";
import { useLiveRunHandle } from "../../../api/window";
import { paths } from "../../../app/paths";
import { Button } from "../../../components/Button";
import { cx } from "../../../components/cx";
import { EmptyState } from "../../../components/EmptyState";
import { Page } from "../../../components/Page";
import { Skeleton } from "../../../components/Skeleton";
import { useQueryParam } from "../../../components/useQueryParam";
import { firstLine } from "../../../model/text-safety";
import { AgentDrawer } from "./AgentDrawer";
import { AgentList } from "./AgentList";
import { ChatBox } from "./ChatBox";
import { EdgeDrawer } from "./EdgeDrawer";
import { RunActions } from "./RunActions";
import { RunBar } from "./RunBar";
import { RunDialogs } from "./RunDialogs";
import { RunState } from "./RunState";
import css from "./RunView.module.css";
import { useRun } from "./run-source";
import { StaleNote } from "./StaleNote";
import { countOf, useAgentGroups, useShown } from "./useAgentGroups";
import { useConflicts } from "./useConflicts";
import { readFilter, useRunScreen } from "./useRunScreen";
import { useRunViewKind } from "./useRunViewKind";
import { useTraffic } from "./useTraffic";

const RunGraph = lazy(() => import("./RunGraph"));
const CRUMBS = [{ label: "Runs", href: paths.runs() }];

export function RunView({ runId }: { readonly runId: string }) {
	const run = useLiveRunHandle(runId);
	const title = useRun((state) => state.run?.title ?? "");
	const isDeleted = useRun((state) => state.isDeleted);
	const groups = useAgentGroups();
	const screen = useRunScreen(runId);
	const view = useRunViewKind();
	const hasAgents = countOf(groups) > 0;
	const isGraph = view === "graph" && hasAgents;
	const name = firstLine(title, 200) || `Run ${runId.slice(0, 8)}`;
	if (isDeleted) {
		return (
			<Page title={name} crumbs={CRUMBS}>
				<EmptyState title="This run was deleted">
					Its agents have ended and its files are gone; its records stay in the log.
				</EmptyState>
			</Page>
		);
	}
	return (
		<Page
			title={name}
			crumbs={CRUMBS}
			aside={
				<>
					<RunState groups={groups} />
					<StaleNote run={run} />
				</>
			}
			actions={<RunActions runId={runId} onAdd={() => screen.openDialog({ kind: "add" })} />}
			bar={<RunBar runId={runId} groups={groups} view={view} tab="agents" />}
			isFull={isGraph}
		>
			{hasAgents ? (
				<Agents runId={runId} isGraph={isGraph} screen={screen} />
			) : (
				<EmptyState
					title="No agent yet"
					action={
						<Button look="primary" icon="plus" onClick={() => screen.openDialog({ kind: "add" })}>
							Add an agent
						</Button>
					}
				>
					Agents and the work that they hand to each other would be here. An agent is a program, such as Claude Code, in
					a role.
				</EmptyState>
			)}
			<RunDialogs runId={runId} screen={screen} />
		</Page>
	);
}

interface AgentsProps {
	readonly runId: string;
	readonly isGraph: boolean;
	readonly screen: ReturnType<typeof useRunScreen>;
}

function Agents({ runId, isGraph, screen }: AgentsProps) {
	const { agent, edge, actions, openDialog } = screen;
	const [show] = useQueryParam("show");
	const groups = useAgentGroups();
	const shown = useShown(groups, readFilter(show));
	const traffic = useTraffic(runId);
	const conflicts = useConflicts(runId);
	const shared = { traffic, shown, conflicts, actions };
	return (
		<div className={cx(isGraph && css.full)}>
			{isGraph ? (
				<div className={css.canvas}>
					<Suspense fallback={<Skeleton label="Loading the graph" lines={6} />}>
						<RunGraph runId={runId} selectedAgent={agent} selectedEdge={edge} {...shared} />
					</Suspense>
				</div>
			) : (
				<AgentList groups={groups} selected={agent} {...shared} />
			)}
			{shown?.size === 0 && <p role="status">No agent fits the filter now.</p>}
			<div className={isGraph ? css.chat : css.stickyChat}>
				<ChatBox runId={runId} agent={null} />
			</div>
			{agent !== null && (
				<AgentDrawer key={agent} runId={runId} id={agent} conflict={conflicts.get(agent) ?? null} actions={actions} />
			)}
			{edge !== null && (
				<EdgeDrawer
					key={edge}
					runId={runId}
					id={edge}
					traffic={traffic}
					actions={actions}
					onDelete={() => openDialog({ kind: "delete-edge", edge })}
				/>
			)}
		</div>
	);
}

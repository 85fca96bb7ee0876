/** A connection between two agents, and the handoffs over it. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { useLiveRun } from "../../api/window";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { SafeText } from "../../components/SafeText";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import { toast } from "../../components/toasts";
import { formatNumberOf } from "../../model/quantity";
import type { RunEdge, RunState, TrackedEnvelope } from "../../model/run";
import { AgentChip } from "./agent/AgentChip";
import { handoffOptions } from "./agent/agent-events";
import css from "./agent/Diffs.module.css";
import { HandoffList, newestFirst } from "./agent/HandoffList";
import { RunGate, runCrumbs } from "./agent/RunGate";
import { useEventLog } from "./agent/useEventLog";

export default function EdgeScreen({ params }: ScreenProps<"run" | "edge">) {
	const view = useLiveRun(params.run);
	const state = view.status === "shown" ? view.state : null;
	const edge = state?.edges[params.edge];
	return (
		<Page
			title={edge === undefined || state === null ? "Connection" : edgeTitle(edge, state)}
			crumbs={runCrumbs(params.run, state)}
			actions={edge !== undefined && <Disconnect run={params.run} edge={edge} />}
			isFull
		>
			<RunGate
				view={view}
				missing={edge === undefined ? { what: `The connection ${params.edge}`, run: params.run } : null}
			>
				{state !== null && edge !== undefined && <EdgeContent state={state} edge={edge} />}
			</RunGate>
		</Page>
	);
}

function nameOf(state: RunState, id: string): string {
	return state.nodes[id]?.label ?? "a deleted agent";
}

function edgeTitle(edge: RunEdge, state: RunState): string {
	return `${nameOf(state, edge.from)} ${edge.bidirectional ? "⇄" : "→"} ${nameOf(state, edge.to)}`;
}

function EdgeContent({ state, edge }: { readonly state: RunState; readonly edge: RunEdge }) {
	const { view, retry } = useEventLog(state.id, "handoffs", handoffOptions);
	return (
		<div className={css.frame}>
			<p className={css.row}>
				<span>
					{edge.type === "handoff" ? "Hands over" : "Reports"}: <SafeText text={edge.label} />
				</span>
				<AgentChip id={edge.from} nodes={state.nodes} />
				<span>{edge.bidirectional ? "to and from" : "to"}</span>
				<AgentChip id={edge.to} nodes={state.nodes} />
				<span>
					{edge.gate
						? "Reports of success are verified before they are delivered."
						: "Handoffs are delivered as they are sent."}
				</span>
			</p>
			{view.status === "loading" && <Skeleton lines={6} />}
			{view.status === "failed" && <ErrorNote error={view.error} onRetry={retry} />}
			{view.status === "shown" && (
				<EdgeHandoffs
					state={state}
					handoffs={Object.values(view.state.envelopes).filter((tracked) => isOn(edge, tracked))}
				/>
			)}
		</div>
	);
}

/** An envelope does not name its connection; the two ends do. */
function isOn(edge: RunEdge, { envelope }: TrackedEnvelope): boolean {
	const isAlong = envelope.fromNodeId === edge.from && envelope.toNodeId === edge.to;
	const isBack = envelope.fromNodeId === edge.to && envelope.toNodeId === edge.from;
	return isAlong || (edge.bidirectional && isBack);
}

interface EdgeHandoffsProps {
	readonly state: RunState;
	readonly handoffs: readonly TrackedEnvelope[];
}

function EdgeHandoffs({ state, handoffs }: EdgeHandoffsProps) {
	if (handoffs.length === 0) {
		return (
			<EmptyState title="No handoffs yet">
				What one of the two agents hands to the other is shown here, newest first.
			</EmptyState>
		);
	}
	const waiting = handoffs.filter((each) => each.state.kind === "queued" || each.state.kind === "held").length;
	return (
		<>
			<p>
				{formatNumberOf(handoffs.length, "handoff")}
				{waiting > 0 && `, ${waiting} of them not read yet`}
			</p>
			<HandoffList
				label="Handoffs over this connection"
				runId={state.id}
				handoffs={newestFirst(handoffs)}
				nodes={state.nodes}
			/>
		</>
	);
}

function Disconnect({ run, edge }: { readonly run: string; readonly edge: RunEdge }) {
	const block = useActionBlock();
	const [isAsking, setAsking] = useState(false);
	const remove = useMutation({
		mutationFn: () =>
			answer(api.DELETE("/api/runs/{run_id}/edges/{id}", { params: { path: { run_id: run, id: edge.id } } })),
		onSuccess() {
			toast("The two agents are no longer connected");
			navigate(paths.run(run));
		},
	});
	return (
		<>
			<Button look="danger" blocked={block} onClick={() => setAsking(true)}>
				Disconnect…
			</Button>
			<ConfirmDialog
				title="Disconnect the two agents?"
				verb="Disconnect"
				isOpen={isAsking}
				isPending={remove.isPending}
				blocked={block}
				error={remove.error}
				onConfirm={() => remove.mutate()}
				onClose={() => setAsking(false)}
			>
				<p>They can hand each other nothing new over this connection.</p>
				<p>Handoffs that wait already are still read, and all of them stay in the log.</p>
			</ConfirmDialog>
		</>
	);
}

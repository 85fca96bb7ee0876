/** What an agent read, thought, said and did, as it happens. */

import { type ReactNode, useCallback, useRef, useState } from "react";
import { Button } from "../../../components/Button";
import { EmptyState } from "../../../components/EmptyState";
import { ErrorNote } from "../../../components/ErrorNote";
import { listBindings, useKeys } from "../../../components/keys";
import { Skeleton } from "../../../components/Skeleton";
import { VirtualList } from "../../../components/VirtualList";
import type { RunNode, RunState } from "../../../model/run";
import type { TranscriptRow } from "../../../model/transcript";
import { timelineOptions } from "./agent-events";
import { Composer } from "./Composer";
import css from "./Timeline.module.css";
import { TimelineRow } from "./TimelineRow";
import { useEventLog } from "./useEventLog";

const ROW_PX = 56;

export function AgentTimeline({ state, node }: { readonly state: RunState; readonly node: RunNode }) {
	const { view, loadOlder, retry } = useEventLog(node.runId, `timeline ${node.id}`, (run) =>
		timelineOptions(run, node.id),
	);
	return (
		<div className={css.frame}>
			<div className={css.list}>
				{view.status === "loading" && <Skeleton lines={8} />}
				{view.status === "failed" && <ErrorNote error={view.error} onRetry={retry} />}
				{view.status === "shown" && view.state.rows.length === 0 && !view.hasOlder && (
					<EmptyState title="No turn yet">
						What this agent reads, thinks, says and does is shown here. Send it a message to begin.
					</EmptyState>
				)}
				{view.status === "shown" && (view.state.rows.length > 0 || view.hasOlder) && (
					<TranscriptList
						label={`Timeline of ${node.label}`}
						runId={node.runId}
						rows={view.state.rows}
						nodes={state.nodes}
						first={
							view.hasOlder && <Earlier isPending={view.isLoadingOlder} error={view.olderError} onLoad={loadOlder} />
						}
						onReachStart={loadOlder}
						followsEnd
					/>
				)}
			</div>
			<Composer node={node} />
		</div>
	);
}

interface EarlierProps {
	readonly isPending: boolean;
	readonly error: unknown;
	readonly onLoad: () => void;
}

function Earlier({ isPending, error, onLoad }: EarlierProps) {
	return (
		<div className={css.older}>
			<Button look="quiet" isPending={isPending} onClick={onLoad}>
				Show earlier turns
			</Button>
			{error !== null && <ErrorNote context="The earlier turns were not loaded." error={error} />}
		</div>
	);
}

export interface TranscriptListProps {
	readonly label: string;
	readonly runId: string;
	readonly rows: readonly TranscriptRow[];
	readonly nodes: Readonly<Record<string, RunNode>>;
	/** What stands above the first row. */
	readonly first?: ReactNode;
	readonly onReachStart?: () => void;
	readonly followsEnd?: boolean;
}

/** The rows of a transcript in a list of which only the visible part is in the document. */
export function TranscriptList({
	label,
	runId,
	rows,
	nodes,
	first,
	onReachStart,
	followsEnd = false,
}: TranscriptListProps) {
	const frame = useRef<HTMLDivElement>(null);
	const { opened, toggle } = useOpened();
	useKeys(
		label,
		listBindings(() => frame.current),
	);
	return (
		<div ref={frame} style={{ height: "100%" }}>
			<VirtualList
				label={label}
				items={rows}
				itemKey={(row) => row.key}
				estimate={ROW_PX}
				followsEnd={followsEnd}
				{...(onReachStart === undefined ? {} : { onReachStart })}
				renderItem={(row, at) => (
					<div className={css.row}>
						{at === 0 && first}
						<TimelineRow runId={runId} row={row} nodes={nodes} isOpen={opened.has(row.key)} onToggle={toggle} />
					</div>
				)}
			/>
		</div>
	);
}

/** Which rows are opened. */
export function useOpened() {
	const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
	const toggle = useCallback((key: string, isOpen: boolean) => {
		setOpened((before) => {
			if (before.has(key) === isOpen) return before;
			const next = new Set(before);
			if (isOpen) next.add(key);
			else next.delete(key);
			return next;
		});
	}, []);
	return { opened, toggle };
}

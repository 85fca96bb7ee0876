/** What an agent read, thought, said and did, as it happens. */

import { type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import type { EventLogView } from "../../../api/event-log";
import { Button } from "../../../components/Button";
import { cx } from "../../../components/cx";
import { EmptyState } from "../../../components/EmptyState";
import { ErrorNote } from "../../../components/ErrorNote";
import { listBindings, useKeys } from "../../../components/keys";
import { Skeleton } from "../../../components/Skeleton";
import { useQueryParam } from "../../../components/useQueryParam";
import { VirtualList } from "../../../components/VirtualList";
import type { RunNode, RunState } from "../../../model/run";
import { inputKey, type Transcript, type TranscriptRow } from "../../../model/transcript";
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
	const named = useNamedInput(view, loadOlder);
	return (
		<div className={css.frame}>
			<div className={css.list}>
				{(view.status === "loading" || named.isLookedFor) && (
					<Skeleton lines={8} {...(named.isLookedFor ? { label: "Looking for the message" } : {})} />
				)}
				{view.status === "failed" && <ErrorNote error={view.error} onRetry={retry} />}
				{view.status === "shown" && view.state.rows.length === 0 && !view.hasOlder && (
					<EmptyState title="No turn yet">
						What this agent reads, thinks, says and does is shown here. Send it a message to begin.
					</EmptyState>
				)}
				{view.status === "shown" && !named.isLookedFor && (view.state.rows.length > 0 || view.hasOlder) && (
					<TranscriptList
						label={`Timeline of ${node.label}`}
						runId={node.runId}
						rows={view.state.rows}
						nodes={state.nodes}
						first={
							view.hasOlder && <Earlier isPending={view.isLoadingOlder} error={view.olderError} onLoad={loadOlder} />
						}
						onReachStart={loadOlder}
						named={named.key}
						followsEnd
					/>
				)}
			</div>
			<Composer node={node} />
		</div>
	);
}

/** The message that the URL names. It may be older than what is there, so earlier pages are fetched until it is found. */
function useNamedInput(view: EventLogView<Transcript>, loadOlder: () => void) {
	const [message] = useQueryParam("message");
	const key = message === null ? null : inputKey(message);
	const isMissing = key !== null && view.status === "shown" && !view.state.rows.some((row) => row.key === key);
	const isLookedFor = isMissing && view.hasOlder && view.olderError === null;
	useEffect(() => {
		if (isLookedFor) loadOlder();
	});
	return { key, isLookedFor };
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
	/** The key of the row that a link named. */
	readonly named?: string | null;
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
	named = null,
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
				named={named}
				{...(onReachStart === undefined ? {} : { onReachStart })}
				renderItem={(row, at) => (
					<div className={cx(css.row, row.key === named && css.named)} aria-current={row.key === named || undefined}>
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

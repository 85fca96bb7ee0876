/** What an agent's program printed beside its protocol, as text. */

import { Button } from "../../../components/Button";
import { EmptyState } from "../../../components/EmptyState";
import { ErrorNote } from "../../../components/ErrorNote";
import { SafeText } from "../../../components/SafeText";
import { Skeleton } from "../../../components/Skeleton";
import { VirtualList } from "../../../components/VirtualList";
import type { RunNode } from "../../../model/run";
import { formatExact, parseTime } from "../../../model/time";
import css from "./AgentLog.module.css";
import { type LogLine, logOptions } from "./agent-events";
import { useEventLog } from "./useEventLog";

const ROW_PX = 20;

export function AgentLog({ node }: { readonly node: RunNode }) {
	const { view, loadOlder, retry } = useEventLog(node.runId, `log ${node.id}`, (run) => logOptions(run, node.id));
	if (view.status === "loading") return <Skeleton lines={8} />;
	if (view.status === "failed") return <ErrorNote error={view.error} onRetry={retry} />;
	if (view.state.length === 0) {
		return (
			<EmptyState title="Nothing logged">
				Warnings and errors that this agent’s program prints beside its answers are shown here. It has printed none.
			</EmptyState>
		);
	}
	return (
		<div className={css.frame}>
			{view.hasOlder && (
				<Button look="quiet" isPending={view.isLoadingOlder} onClick={loadOlder}>
					Show earlier lines
				</Button>
			)}
			{view.olderError !== null && <ErrorNote error={view.olderError} onRetry={loadOlder} />}
			<div className={css.lines}>
				<VirtualList
					label={`Log of ${node.label}`}
					items={view.state}
					itemKey={({ key }) => key}
					estimate={ROW_PX}
					followsEnd
					renderItem={(line) => <Line line={line} />}
				/>
			</div>
		</div>
	);
}

function Line({ line }: { readonly line: LogLine }) {
	const at = parseTime(line.at);
	return (
		<p className={css.line}>
			<time dateTime={line.at} title={at === null ? line.at : formatExact(at)} className={css.time}>
				{at === null ? line.at : formatExact(at).slice(11, 23)}
			</time>
			<code className={css.text}>
				<SafeText text={line.text} escapes="strip" />
			</code>
		</p>
	);
}

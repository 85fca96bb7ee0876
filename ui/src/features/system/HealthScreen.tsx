/** How the server does: whether it can write, what it holds, and its rates over the last ten minutes. */

import { useQuery } from "@tanstack/react-query";
import { Facts } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { StateWord } from "../../components/StateWord";
import { gaugeSeries, rateSeries, type Sample } from "../../model/metrics";
import { formatBytes, formatCount } from "../../model/quantity";
import type { Schema } from "../../model/schema";
import css from "./Health.module.css";
import { Plot } from "./Plot";
import { SystemFrame } from "./SystemFrame";
import { statsQuery } from "./stats-query";
import { useMetrics } from "./useMetrics";

export default function HealthScreen() {
	const { data, error, isPending, refetch } = useQuery(statsQuery());
	const metrics = useMetrics();
	return (
		<SystemFrame page="health">
			{isPending && <Skeleton lines={4} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && <ServerState stats={data} />}
			{metrics.error !== null && <ErrorNote context="The plots stand still." error={metrics.error} />}
			<Plots samples={metrics.samples} />
			{data !== undefined && <StoreFacts stats={data} />}
		</SystemFrame>
	);
}

function ServerState({ stats }: { readonly stats: Schema<"Stats"> }) {
	if (stats.poisoned) {
		return (
			<StateWord tone="failed" word="read only">
				a write to the log failed; restart the server after you have made room or repaired the disk
			</StateWord>
		);
	}
	if (stats.lost_turns + stats.lost_contexts > 0) {
		return (
			<StateWord tone="waiting" word="damaged">
				{formatCount(stats.lost_turns)} turns and {formatCount(stats.lost_contexts)} contexts were lost; `turnkeep
				verify` names them
			</StateWord>
		);
	}
	return (
		<StateWord tone="done" word="healthy">
			the log takes writes, and nothing was lost
		</StateWord>
	);
}

function Plots({ samples }: { readonly samples: readonly Sample[] }) {
	const perSecond = (value: number) => `${value >= 10 ? Math.round(value) : value.toFixed(1)}/s`;
	const rate = (name: string) => rateSeries(samples, name);
	const gauge = (name: string) => gaugeSeries(samples, name);
	return (
		<div className={css.plots}>
			<Plot title="Turns appended" values={rate("turnkeep_turns_total")} format={perSecond} />
			<Plot title="Groups synced to disk" values={rate("turnkeep_commit_groups_total")} format={perSecond} />
			<Plot title="Commands that wait" values={gauge("turnkeep_queue_commands")} format={formatCount} />
			<Plot title="Connections" values={gauge("turnkeep_connections")} format={formatCount} />
			<Plot title="Memory of large requests" values={gauge("turnkeep_memory_used_bytes")} format={formatBytes} />
			<Plot title="Log on disk" values={gauge("turnkeep_log_bytes")} format={formatBytes} />
		</div>
	);
}

function StoreFacts({ stats }: { readonly stats: Schema<"Stats"> }) {
	return (
		<Facts
			facts={[
				["Turns", formatCount(stats.turns)],
				["Contexts", formatCount(stats.contexts)],
				["Payloads", `${formatCount(stats.blobs)}, ${formatBytes(stats.blob_raw_bytes)} before compression`],
				["Log", `${formatBytes(stats.log_bytes)}, position ${stats.log_position}`],
				["Index", formatBytes(stats.index_bytes)],
				["Types", formatCount(stats.types)],
			]}
		/>
	);
}

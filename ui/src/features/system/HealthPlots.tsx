/** Throughput, latency, storage, connections and queues over the last ten minutes. */

import type { ReactNode } from "react";
import { formatBytes, formatCount } from "../../model/quantity";
import { formatLatency } from "../../model/request-metrics";
import css from "./Health.module.css";
import { BINARY_ANSWERS, HTTP_ANSWERS, type Reading } from "./metrics-store";
import { Plot } from "./Plot";
import { gaugePlot, latencyPlot, ratePlot } from "./plot-series";

export function HealthPlots({ readings }: { readonly readings: readonly Reading[] }) {
	const gauge = (names: Readonly<Record<string, string>>) => gaugePlot(readings, names);
	const rate = (names: Readonly<Record<string, string>>) => ratePlot(readings, names);
	return (
		<>
			<PlotGroup title="Throughput">
				<Plot title="Turns appended" data={rate({ turns: "turnkeep_turns_total" })} format={perSecond} />
				<Plot
					title="Requests answered"
					note="without those of this page"
					data={rate({ HTTP: HTTP_ANSWERS, binary: BINARY_ANSWERS })}
					format={perSecond}
				/>
				<Plot
					title="Groups synced to disk"
					note="commands that wait together share one sync"
					data={rate({ groups: "turnkeep_commit_groups_total", commands: "turnkeep_commands_total" })}
					format={perSecond}
				/>
			</PlotGroup>
			<PlotGroup title="Latency">
				<Plot
					title="Time to answer over HTTP"
					note="roughly, from a histogram"
					data={latencyPlot(readings, { half: 0.5, "95 %": 0.95 })}
					format={formatLatency}
				/>
			</PlotGroup>
			<PlotGroup title="Storage">
				<Plot title="Log on disk" data={gauge({ log: "turnkeep_log_bytes" })} format={formatBytes} />
				<Plot title="Index on disk" data={gauge({ index: "turnkeep_index_bytes" })} format={formatBytes} />
				<Plot
					title="Payloads"
					data={gauge({ kept: "turnkeep_blob_stored_bytes", "before compression": "turnkeep_blob_raw_bytes" })}
					format={formatBytes}
				/>
			</PlotGroup>
			<PlotGroup title="Connections and queues">
				<Plot title="Connections" note="on both ports" data={gauge({ open: "turnkeep_connections" })} format={whole} />
				<Plot
					title="What waits"
					data={gauge({ commands: "turnkeep_queue_commands", "large requests": "turnkeep_memory_waiting_requests" })}
					format={whole}
				/>
				<Plot
					title="Memory of large requests"
					data={gauge({ used: "turnkeep_memory_used_bytes" })}
					format={formatBytes}
				/>
			</PlotGroup>
		</>
	);
}

function PlotGroup({ title, children }: { readonly title: string; readonly children: ReactNode }) {
	return (
		<section className={css.group}>
			<h2>{title}</h2>
			<div className={css.plots}>{children}</div>
		</section>
	);
}

function perSecond(value: number): string {
	return `${value >= 10 ? formatCount(Math.round(value)) : value.toFixed(1)}/s`;
}

/** Between two whole numbers the axis has no tick. */
function whole(value: number): string {
	return Number.isInteger(value) ? formatCount(value) : "";
}

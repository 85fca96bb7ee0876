/** What the plots of the health page show, from the readings of the metrics. */

import { gaugeSeries, rateSeries } from "../../model/metrics";
import { timeOfShare } from "../../model/request-metrics";
import type { Reading } from "./metrics-store";

export interface PlotLine {
	/** What the line is; said where a plot has more than one. */
	readonly name: string;
	/** A value for each time; null where there is none. */
	readonly values: readonly (number | null)[];
}

export interface PlotData {
	/** Milliseconds since 1970. */
	readonly times: readonly number[];
	readonly lines: readonly PlotLine[];
}

/** Readings that are so far apart had a pause between them, which is no line. */
const PAUSE_MS = 20_000;

/** Gauges as they are. */
export function gaugePlot(readings: readonly Reading[], names: Readonly<Record<string, string>>): PlotData {
	const lines = Object.entries(names).map(([name, metric]) => ({ name, values: gaugeSeries(readings, metric) }));
	return withPauses({ times: readings.map(({ at }) => at), lines });
}

/** Counters as their growth a second. */
export function ratePlot(readings: readonly Reading[], names: Readonly<Record<string, string>>): PlotData {
	const lines = Object.entries(names).map(([name, metric]) => ({
		name,
		values: rateSeries(readings, metric).map((value, at) => (isPause(readings, at) ? null : value)),
	}));
	return { times: readings.slice(1).map(({ at }) => at), lines };
}

/** The times in which shares of the requests were answered. */
export function latencyPlot(readings: readonly Reading[], shares: Readonly<Record<string, number>>): PlotData {
	const lines = Object.entries(shares).map(([name, share]) => ({
		name,
		values: readings.slice(1).map(({ buckets }, at) => timeOfShare(readings[at]?.buckets ?? [], buckets, share)),
	}));
	return { times: readings.slice(1).map(({ at }) => at), lines };
}

/** Whether there was a pause between a reading and the next one. */
function isPause(readings: readonly Reading[], at: number): boolean {
	const [before, after] = [readings[at], readings[at + 1]];
	return before !== undefined && after !== undefined && after.at - before.at > PAUSE_MS;
}

/** A point without values in each pause breaks the line there. */
function withPauses({ times, lines }: PlotData): PlotData {
	const breaks = times.map((time, at) => time - (times[at - 1] ?? time) > PAUSE_MS);
	const spread = <Value>(items: readonly Value[], gap: (at: number) => Value): Value[] =>
		items.flatMap((item, at) => (breaks[at] ? [gap(at), item] : [item]));
	return {
		times: spread(times, (at) => (times[at] ?? 1) - 1),
		lines: lines.map(({ name, values }) => ({ name, values: spread(values, () => null) })),
	};
}

/**
 * The server's metrics over time, for plots.
 *
 * `/metrics` has counters that only grow and gauges. A plot shows gauges as they are and counters as rates:
 * 1 000 turns at 10 s and 1 500 turns at 15 s are 100 turns a second. A restarted server counts from zero again, so a
 * counter that fell starts anew and never shows as a negative rate.
 */

/** One reading of all metrics without labels. */
export interface Sample {
	readonly at: number;
	readonly values: ReadonlyMap<string, number>;
}

/** How many readings are kept: ten minutes at one in five seconds. */
const SAMPLES_MAX = 120;

/** Reads the text of `/metrics`; lines with labels and comments are skipped. */
export function readMetrics(text: string, at: number): Sample {
	const values = new Map<string, number>();
	for (const line of text.split("\n")) {
		const [name, value] = line.split(" ");
		if (name === undefined || value === undefined || name.startsWith("#") || name.includes("{")) continue;
		const number = Number(value);
		if (Number.isFinite(number)) values.set(name, number);
	}
	return { at, values };
}

export function addSample(samples: readonly Sample[], sample: Sample): readonly Sample[] {
	return [...samples, sample].slice(-SAMPLES_MAX);
}

/** A gauge at each reading; missing readings are 0. */
export function gaugeSeries(samples: readonly Sample[], name: string): number[] {
	return samples.map((sample) => sample.values.get(name) ?? 0);
}

/** A counter as its growth a second between two readings. */
export function rateSeries(samples: readonly Sample[], name: string): number[] {
	return samples.slice(1).map((sample, at) => {
		const before = samples[at];
		if (before === undefined || sample.at <= before.at) return 0;
		const grown = (sample.values.get(name) ?? 0) - (before.values.get(name) ?? 0);
		return grown < 0 ? 0 : (grown * 1000) / (sample.at - before.at);
	});
}

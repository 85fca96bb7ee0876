/** What was measured: percentiles, slopes, and the rows of the table. */

/** How a figure compares with its budget. A row without a budget is there to be read. */
export interface Row {
	readonly what: string;
	readonly measured: string;
	readonly budget: string;
	readonly isReached: boolean | null;
}

/** The smallest value that so many percent of all values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
	const sorted = values.toSorted((one, other) => one - other);
	const at = Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1);
	const found = sorted[at];
	if (found === undefined) throw new Error("there is no percentile of nothing");
	return found;
}

export interface Point {
	readonly x: number;
	readonly y: number;
}

/** By how much y rises with x: the line with the least squares. */
export function slope(points: readonly Point[]): number {
	const mean = (read: (point: Point) => number) => points.reduce((sum, point) => sum + read(point), 0) / points.length;
	const [middleX, middleY] = [mean(({ x }) => x), mean(({ y }) => y)];
	const spread = points.reduce((sum, { x }) => sum + (x - middleX) ** 2, 0);
	if (spread === 0) return 0;
	return points.reduce((sum, { x, y }) => sum + (x - middleX) * (y - middleY), 0) / spread;
}

/** A figure that must not exceed its budget. */
export function atMost(what: string, value: number, budget: number, words: (value: number) => string): Row {
	return { what, measured: words(value), budget: `≤ ${words(budget)}`, isReached: value <= budget };
}

/** A figure without a budget. */
export function shown(what: string, measured: string): Row {
	return { what, measured, budget: "", isReached: null };
}

export const kilobytes = (bytes: number) => `${Math.round(bytes / 1000)} KB`;
export const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
export const milliseconds = (ms: number) => `${Math.round(ms)} ms`;
export const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;

export function describeRows(rows: readonly Row[]): string {
	const lines = rows.map(({ what, measured, budget, isReached }) => {
		const word = isReached === null ? "" : isReached ? "yes" : "NO";
		return `| ${what} | ${measured} | ${budget} | ${word} |`;
	});
	return `| what | measured | budget | reached |\n|---|---|---|---|\n${lines.join("\n")}\n`;
}

import { expect, test } from "vitest";
import type { Reading } from "./metrics-store";
import { gaugePlot, latencyPlot, ratePlot } from "./plot-series";

const reading = (at: number, value: number, answered = 0): Reading => ({
	at,
	values: new Map([["n", value]]),
	buckets: [
		{ seconds: 0.001, count: answered },
		{ seconds: Number.POSITIVE_INFINITY, count: answered },
	],
});

test("a pause between readings breaks the lines", () => {
	const readings = [reading(0, 1), reading(5_000, 2), reading(65_000, 8)];
	expect(gaugePlot(readings, { a: "n" })).toEqual({
		times: [0, 5_000, 64_999, 65_000],
		lines: [{ name: "a", values: [1, 2, null, 8] }],
	});
	expect(ratePlot(readings, { a: "n" })).toEqual({
		times: [5_000, 65_000],
		lines: [{ name: "a", values: [0.2, null] }],
	});
});

test("there is no latency where nothing was asked", () => {
	const plot = latencyPlot([reading(0, 0, 3), reading(5_000, 0, 3), reading(10_000, 0, 7)], { all: 1 });
	expect(plot.lines[0]?.values).toEqual([null, 1]);
});

test("one reading gives gauges and no rate", () => {
	expect(ratePlot([reading(0, 1)], { a: "n" }).times).toEqual([]);
	expect(gaugePlot([reading(0, 1)], { a: "n" }).lines[0]?.values).toEqual([1]);
	expect(gaugePlot([], { a: "n" }).times).toEqual([]);
});

import { describe, expect, it } from "vitest";
import { addSample, gaugeSeries, rateSeries, readMetrics, type Sample } from "./metrics";

const sample = (at: number, turns: number): Sample => ({ at, values: new Map([["turns_total", turns]]) });

describe("metrics", () => {
	it("are read without comments, labels and what is no number", () => {
		const text = '# HELP a\na 3\nb{route="x"} 4\nc NaN\nd 1.5e3\n\n';
		expect([...readMetrics(text, 7).values]).toEqual([
			["a", 3],
			["d", 1500],
		]);
	});

	it("show counters as rates", () => {
		expect(rateSeries([sample(10_000, 1000), sample(15_000, 1500)], "turns_total")).toEqual([100]);
	});

	it("show no negative rate after a restart, and none for two readings at once", () => {
		expect(rateSeries([sample(0, 50), sample(1000, 3), sample(1000, 9)], "turns_total")).toEqual([0, 0]);
	});

	it("keep ten minutes", () => {
		let samples: readonly Sample[] = [];
		for (let at = 0; at < 200; at += 1) samples = addSample(samples, sample(at, at));
		expect(samples.length).toBe(120);
		expect(gaugeSeries(samples, "turns_total").at(-1)).toBe(199);
	});
});

import { describe, expect, test } from "vitest";
import { formatAge, formatDuration, formatExact, formatRelative, nextAgeChange, parseTime } from "./time";

const NOW = Date.parse("2026-11-18T15:00:00Z");
const ago = (ms: number) => formatRelative(NOW - ms, NOW);

describe("time", () => {
	test.each([
		[0, "now"],
		[4_999, "now"],
		[59_000, "55 s ago"],
		[60_000, "1 min ago"],
		[59 * 60_000, "59 min ago"],
		[3_600_000, "1 h ago"],
		[24 * 3_600_000, "1 day ago"],
		[72 * 3_600_000, "3 days ago"],
		[-2_000, "now"],
		[-600_000, "in 10 min"],
	])("%i ms before now is %s", (ms, words) => {
		expect(ago(ms)).toBe(words);
	});

	test.each([
		[0, "0 ms"],
		[999, "999 ms"],
		[1_250, "1.2 s"],
		[9_990, "9.9 s"],
		[12_999, "12 s"],
		[119_000, "1 min"],
		[2 * 3_600_000 + 5 * 60_000, "2 h 5 min"],
		[24 * 3_600_000, "1 day"],
		[51 * 3_600_000, "2 days 3 h"],
	])("%i ms last %s", (ms, words) => {
		expect(formatDuration(ms)).toBe(words);
	});

	test("the exact time has its milliseconds and its offset", () => {
		expect(formatExact(NOW + 118)).toMatch(/^2026-11-1[89] \d\d:\d\d:00\.118 [+−]\d\d:\d\d$/);
	});

	test("a text that is no time is null", () => {
		expect(parseTime("soon")).toBeNull();
		expect(parseTime("2026-11-18T15:00:00Z")).toBe(NOW);
	});

	test("an age changes when its clock says that it does", () => {
		for (const age of [0, 30_000, 61_000, 3_599_000, 7_300_000]) {
			const wait = nextAgeChange(NOW - age, NOW);
			expect(formatAge(NOW - age, NOW + wait)).not.toBe(formatAge(NOW - age, NOW));
		}
	});
});

import { expect, test } from "vitest";
import { atMost, describeRows, milliseconds, percentile, shown, slope } from "../scripts/budgets/figures";
import { replaceSection } from "../scripts/section";

test("a percentile is one of the values", () => {
	const values = Array.from({ length: 20 }, (_, at) => 20 - at);
	expect(percentile(values, 50)).toBe(10);
	expect(percentile(values, 95)).toBe(19);
	expect(percentile(values, 100)).toBe(20);
	expect(percentile([7], 95)).toBe(7);
	expect(() => percentile([], 50)).toThrow("no percentile");
});

test("a slope is that of the line with the least squares", () => {
	expect(slope([0, 1, 2, 3].map((x) => ({ x, y: 5 + 2 * x })))).toBeCloseTo(2);
	expect(
		slope([
			{ x: 0, y: 0 },
			{ x: 1, y: 3 },
			{ x: 2, y: 0 },
		]),
	).toBeCloseTo(0);
	expect(slope([{ x: 1, y: 4 }])).toBe(0);
});

test("a row says whether its budget is reached", () => {
	const rows = [
		atMost("a key", 100, 100, milliseconds),
		atMost("a task", 101, 100, milliseconds),
		shown("a heap", "17 MB"),
	];
	expect(describeRows(rows)).toBe(
		`| what | measured | budget | reached |
|---|---|---|---|
| a key | 100 ms | ≤ 100 ms | yes |
| a task | 101 ms | ≤ 100 ms | NO |
| a heap | 17 MB |  |  |
`,
	);
});

test("a script writes between its marks only", () => {
	const document = "a\n<!-- one -->\nold\n<!-- /one -->\nb\n<!-- two -->\n<!-- /two -->\n";
	expect(replaceSection(document, "one", "new\n")).toBe(document.replace("old", "new"));
	expect(() => replaceSection(document, "three", "")).toThrow("the marks of three");
});

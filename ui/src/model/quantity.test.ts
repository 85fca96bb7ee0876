import { expect, test } from "vitest";
import { formatBytes, formatCost, formatCount, formatNumberOf, formatTokens } from "./quantity";

test("sizes have a unit", () => {
	expect([0, 812, 1024, 1.4 * 1024 ** 2, 300 * 1024 ** 2].map(formatBytes)).toEqual([
		"0 B",
		"812 B",
		"1.0 KiB",
		"1.4 MiB",
		"300 MiB",
	]);
});

test("counts are grouped and stay exact", () => {
	expect(formatCount("18446744073709551615")).toBe("18\u202f446\u202f744\u202f073\u202f709\u202f551\u202f615");
	expect(formatNumberOf(1, "file")).toBe("1 file");
	expect(formatNumberOf(0, "reply", "replies")).toBe("0 replies");
});

test("tokens and costs are short", () => {
	expect([980, 12_345, 999_499, 999_500, 4_100_000].map(formatTokens)).toEqual([
		"980",
		"12.3 k",
		"999 k",
		"1.0 M",
		"4.1 M",
	]);
	expect([0, 0.0042, 1.2, 0.00001].map(formatCost)).toEqual(["$0", "$0.0042", "$1.20", "< $0.0001"]);
});

import { describe, expect, it } from "vitest";
import {
	changeSummary,
	enumWords,
	fieldRows,
	fieldWords,
	shownVersions,
	type TypeVersion,
	toggledVersions,
	typePieces,
	versionNumbers,
} from "./type-versions";

const version = (type_version: number, fields: Record<string, unknown>, enums = {}): TypeVersion => ({
	type_id: "T",
	type_version,
	bundle_id: `b${type_version}`,
	fields: fields as TypeVersion["fields"],
	enums,
});

describe("the versions of a type", () => {
	it("are compared tag by tag, each with the one before it", () => {
		const rows = fieldRows([
			version(1, { "1": { name: "a", type: "string" }, "9": { name: "i", type: "u8" } }),
			version(2, { "1": { type: "string", name: "a" }, "10": { name: "j", type: "u8" } }),
			version(3, { "1": { name: "b", type: "string" }, "10": { name: "j", type: "u8" } }),
		]);
		expect(rows.map(({ tag, cells }) => [tag, ...cells.map(({ change }) => change)])).toEqual([
			["1", "first", "same", "changed"],
			["9", "first", "gone", "absent"],
			["10", "absent", "added", "same"],
		]);
	});

	it("say what a changed field was before, and how many fields differ", () => {
		const rows = fieldRows([
			version(1, { "1": { name: "a", type: "u8", optional: true }, "2": { name: "b", type: "string" } }),
			version(2, { "1": { name: "c", type: "u16", unit: "cm" }, "2": { name: "b", type: "string" } }),
			version(3, { "1": { name: "c", type: "u16" }, "3": { name: "d", type: "string" } }),
			version(4, { "1": { name: "c", type: "u16" }, "3": { name: "d", type: "string" } }),
		]);
		expect(rows[0]?.cells.map(({ was }) => was)).toEqual([
			[],
			["the name was a", "the type was u8", "it was optional", "it had nothing more"],
			['it had {"unit":"cm"}'],
			[],
		]);
		expect([0, 1, 2, 3].map((at) => changeSummary(rows, at))).toEqual([
			"",
			"1 changed",
			"1 added, 1 changed, 1 gone",
			"no field differs",
		]);
	});

	it("name their enums once, with labels by number", () => {
		const versions = [
			version(1, {}, { E: { "10": "ten", "2": "two" } }),
			version(2, {}, { E: { "10": "ten", "2": "two" } }),
		];
		expect(enumWords(versions)).toEqual([
			{
				id: "E",
				labels: [
					["2", "two"],
					["10", "ten"],
				],
			},
		]);
	});
});

describe("a field", () => {
	it.each([
		[{ name: "a", type: "string" }, "string"],
		[{ name: "a", type: "array", items: { type: "ref", ref: "x.Call" } }, "list of x.Call"],
		[
			{ name: "a", type: "map", key_type: "string", value_type: { type: "array", items: "u8" } },
			"map of string to list of u8",
		],
		[{ name: "a", type: "i64", semantic: "unix_ms" }, "i64 as unix_ms"],
		[{ name: "a", type: "u8", enum: "x.State" }, "u8 of x.State"],
		["nonsense", "nonsense"],
		[{}, "any"],
	])("%j is said as %s", (field, type) => {
		expect(fieldWords(field).type).toBe(type);
	});

	it("is split at the types that are known", () => {
		const texts = (words: string) => typePieces(words, new Set(["x.Call"])).map(({ at, text }) => `${at}:${text}`);
		expect(texts("map of x.Call to list of x.Call")).toEqual(["0:map of ", "7:x.Call", "13: to list of ", "25:x.Call"]);
		expect(texts("list of x.Other")).toEqual(["0:list of x.Other"]);
		expect(texts("x.Call")).toEqual(["0:x.Call"]);
	});

	it("keeps what it has no words for", () => {
		expect(fieldWords({ name: "a", type: "u8", optional: true, unit: "cm" })).toEqual({
			name: "a",
			type: "u8",
			isOptional: true,
			more: '{"unit":"cm"}',
		});
	});
});

describe("which versions are shown", () => {
	it("are the newest, and always the one of the link", () => {
		expect(shownVersions([1, 2, 3, 4, 5], null, null)).toEqual([3, 4, 5]);
		expect(shownVersions([1, 2, 3, 4, 5], null, "1")).toEqual([1, 4, 5]);
		expect(shownVersions([1], null, "7")).toEqual([1]);
	});

	it("are those that were chosen, if there are any", () => {
		expect(shownVersions([1, 2, 3, 4], "4,1", "2")).toEqual([1, 4]);
		expect(shownVersions([1, 2], "9,x", null)).toEqual([1, 2]);
	});
});

describe("the numbers of versions", () => {
	it("are all said, of many the newest", () => {
		expect(versionNumbers([1, 2])).toBe("1, 2");
		expect(versionNumbers([1, 2, 3, 4, 5, 6, 9, 12])).toBe("… 3, 4, 5, 6, 9, 12");
	});

	it("are switched on and off one by one", () => {
		expect(toggledVersions([1, 3], 2)).toBe("1,2,3");
		expect(toggledVersions([1, 3], 3)).toBe("1");
		expect(toggledVersions([1], 1)).toBeNull();
	});
});

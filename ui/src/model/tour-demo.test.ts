import { describe, expect, it } from "vitest";
import { uuid } from "./run-fixtures";
import { DEMO_CHARS_MAX, readTourDemo } from "./tour-demo";

const ANSWER = {
	run: uuid(1),
	approval_node: uuid(2),
	node_stalled: uuid(3),
	file: "src/prices.py",
	line: 3,
	world: "shop",
	persons: ["ANN", "BOB"],
	context: "12",
};
const read = (change: object) => readTourDemo(JSON.stringify({ ...ANSWER, ...change }));

describe("the answer of a demo", () => {
	it("names the things of the tour; other fields are ignored", () => {
		expect(read({ version: 2 })).toEqual({
			run: uuid(1),
			approvalNode: uuid(2),
			stalledNode: uuid(3),
			file: "src/prices.py",
			line: 3,
			world: "shop",
			persons: ["ANN", "BOB"],
			context: "12",
		});
	});

	it.each(Object.keys(ANSWER))("is rejected without %s", (field) => {
		expect(read({ [field]: undefined })).toBeNull();
		expect(read({ [field]: { nested: true } })).toBeNull();
	});

	it.each([
		["an id that is no UUID", { run: "1" }],
		["an id that would end a selector", { approval_node: `${uuid(2)}"]` }],
		["a name that is no ledger", { world: "../shop" }],
		["one person twice", { persons: ["ANN", "ANN"] }],
		["one person", { persons: ["ANN"] }],
		["a context that is no number", { context: "twelve" }],
		["line 0", { line: 0 }],
		["a part of a line", { line: 1.5 }],
		["a line as text", { line: "3" }],
		["an endless path", { file: "x".repeat(5_000) }],
	])("is rejected with %s", (_, change) => {
		expect(read(change)).toBeNull();
	});

	it.each(["", "null", "[]", "7", "{", '"demo"', " ".repeat(DEMO_CHARS_MAX + 1)])("is rejected as %j", (body) => {
		expect(readTourDemo(body)).toBeNull();
	});
});

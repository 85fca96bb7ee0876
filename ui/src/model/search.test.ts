import { expect, test } from "vitest";
import { findItems, readSearch, type SearchItem } from "./search";

const ID = "6f0a2d0e-8a3b-4c5d-9e1f-001122334455";

test("a pasted ref is what it names", () => {
	expect(readSearch(` turn:7 `).refs).toEqual([{ kind: "turn", id: "7" }]);
	expect(readSearch("@last:3")).toMatchObject({ refs: [{ kind: "capturedTurn", session: "@last", seq: "3" }] });
});

test("a bare id is tried as everything that it may be", () => {
	expect(readSearch("#7").refs.map((ref) => ref.kind)).toEqual(["turn", "context"]);
	expect(readSearch(ID).refs.map((ref) => ref.kind)).toEqual([
		"agentTurn",
		"run",
		"node",
		"artifact",
		"envelope",
		"message",
	]);
	expect(readSearch("af1349b9").refs.map((ref) => ref.kind)).toEqual(["blob"]);
	expect(readSearch("face").refs).toEqual([]);
	expect(readSearch("@7").refs).toEqual([]);
});

const items: SearchItem[] = [
	{ id: "1", group: "Runs", label: "Fix the parser test" },
	{ id: "2", group: "Runs", label: "Test the fixtures" },
	{ id: "3", group: "Actions", label: "New run", detail: "test" },
	{ id: "4", group: "People", label: "CODER" },
];
const ids = (typed: string) => findItems(items, readSearch(typed)).map((item) => item.id);

test("actions come first, then the better match", () => {
	expect(ids("test")).toEqual(["3", "2", "1"]);
	expect(ids("fix test")).toEqual(["1", "2"]);
	expect(ids("nothing")).toEqual([]);
});

test("a first character restricts the search", () => {
	expect(ids(">test")).toEqual(["3"]);
	expect(ids("@")).toEqual(["4"]);
});

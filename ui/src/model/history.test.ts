import { describe, expect, test } from "vitest";
import { labelWords, originOf, originRef, ownLabels, readLabels, turnWords } from "./history";
import type { Schema } from "./schema";

const ID = "0afb".repeat(8);

test("labels say where a history comes from", () => {
	expect(originOf({ "turnkeep.run": "r" })).toBe("run");
	expect(originOf({ "turnkeep.run.copied": "r" })).toBe("run");
	expect(originOf({ session: ID, name: "review" })).toBe("session");
	expect(originOf({ session: "my own word" })).toBe("client");
	expect(originOf({ "turnkeep.ledger.world": "default" })).toBe("ledger");
	expect(originOf({})).toBe("client");
});

test("a history leads to the thing that it belongs to", () => {
	expect(originRef({ "turnkeep.run": "r", "turnkeep.node": "n" })).toBe("node:n");
	expect(originRef({ "turnkeep.run": "r" })).toBe("run:r");
	expect(originRef({ session: ID })).toBe(`session:${ID}`);
	expect(originRef({ agent: "demo" })).toBeNull();
});

test("what the origin says is no label of its own", () => {
	const ofAgent = { "turnkeep.run": "r", "turnkeep.node": "n", note: "x" };
	expect(ownLabels(ofAgent)).toEqual({ note: "x" });
	expect(ownLabels({ "turnkeep.run.copied": "r" })).toEqual({ "turnkeep.run.copied": "r" });
	expect(ownLabels({ agent: "planner" })).toEqual({ agent: "planner" });
});

test("labels are written and read in one form", () => {
	expect(labelWords({ b: "2", a: "1=1" })).toEqual(["a=1=1", "b=2"]);
	expect(readLabels("a = 1=1\n\n b=2 ")).toEqual({ labels: { a: "1=1", b: "2" }, error: null });
	expect(readLabels("a=1\nb").error).toBe("“b” is not of the form key=value");
	expect(readLabels("=1").error).not.toBeNull();
});

describe("turnWords", () => {
	const turn = (fields: Partial<Schema<"Turn">>) => ({ ...fields }) as Schema<"Turn">;

	test("a telling field comes first, then any text, then the fields as they are", () => {
		const words = (data: Record<string, unknown>) => turnWords(turn({ data: data as never }));
		expect(words({ role: "user", text: "Look.\nTwice." })).toEqual({ kind: "text", text: "Look." });
		expect(words({ a: 1, b: { c: "deep" } })).toEqual({ kind: "text", text: "deep" });
		expect(words({ a: 1 })).toEqual({ kind: "text", text: '{"a":1}' });
	});

	test("hidden characters are spelled, and a bad turn says why", () => {
		expect(turnWords(turn({ data: { text: "a\u202eb" } as never }))).toEqual({ kind: "text", text: "a⟨RLO⟩b" });
		const error = { code: "Undecodable", status: 422, message: "no msgpack" };
		expect(turnWords(turn({ error }))).toEqual({ kind: "bad", code: "Undecodable", message: "no msgpack" });
	});
});

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { QueryKey } from "./keys";
import { Invalidation } from "./query";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const appended = (contextId: string) => ({ kind: "turn.appended", contextId, turnId: "1" }) as const;

test("the first notice is acted on at once, a burst after it in one go", () => {
	const refetched: QueryKey[] = [];
	const invalidation = new Invalidation((key) => {
		refetched.push(key);
		return "done";
	});
	invalidation.add(appended("1"));
	expect(refetched).toEqual([["contexts"], ["context", "1"]]);
	refetched.length = 0;
	for (let at = 0; at < 100; at += 1) invalidation.add(appended("1"));
	invalidation.add({ kind: "world.changed", ref: "world:payments" });
	expect(refetched).toEqual([]);
	vi.advanceTimersByTime(300);
	expect(refetched).toEqual([["contexts"], ["context", "1"], ["worlds"], ["world", "payments"]]);
	vi.advanceTimersByTime(10_000);
	expect(refetched).toHaveLength(4);
});

test("missed notices make everything stale, once", () => {
	const refetched: QueryKey[] = [];
	const invalidation = new Invalidation((key) => {
		refetched.push(key);
		return "done";
	});
	invalidation.add({ kind: "missed" });
	expect(refetched).toEqual([[]]);
	invalidation.add({ kind: "run.changed", ref: "run:x" });
	invalidation.add({ kind: "missed" });
	vi.advanceTimersByTime(300);
	expect(refetched).toEqual([[], []]);
});

test("what was being fetched when the notice came is fetched again", () => {
	const answers: ("done" | "again")[] = ["again", "done"];
	let asked = 0;
	const invalidation = new Invalidation(() => {
		asked += 1;
		return answers.shift() ?? "done";
	});
	invalidation.add({ kind: "attention.changed", count: 1 });
	vi.advanceTimersByTime(10_000);
	expect(asked).toBe(2);
});

import { expect, test } from "vitest";
import {
	type AttentionItem,
	agentName,
	attentionRef,
	countByKind,
	filterAttention,
	newItems,
	readAttentionKind,
} from "./attention";
import { uuid } from "./run-fixtures";

function item(number: number, kind: AttentionItem["kind"], since: string, runId = uuid(1)): AttentionItem {
	return { ref: `node:${uuid(number)}`, kind, runId, since, summary: "waits", actions: [] };
}

const LATE = item(3, "approval", "2026-11-18T15:00:00Z");
const EARLY = item(4, "failure", "2026-11-18T14:00:00.5Z", uuid(2));
const EARLIEST = item(5, "approval", "2026-11-18T14:00:00Z", uuid(2));

test("the oldest comes first", () => {
	expect(filterAttention([LATE, EARLY, EARLIEST], { kind: null, run: null })).toEqual([EARLIEST, EARLY, LATE]);
});

test("filters by kind and run", () => {
	expect(filterAttention([LATE, EARLY, EARLIEST], { kind: "approval", run: uuid(2) })).toEqual([EARLIEST]);
	expect(readAttentionKind("approval")).toBe("approval");
	expect(readAttentionKind("nonsense")).toBeNull();
});

test("counts kinds", () => {
	expect([...countByKind([LATE, EARLY, EARLIEST])]).toEqual([
		["approval", 2],
		["failure", 1],
	]);
});

test("an item of another kind about the same thing is new", () => {
	const asFailure = { ...LATE, kind: "failure" as const };
	expect(newItems([LATE], [LATE, asFailure])).toEqual([asFailure]);
	expect(attentionRef(LATE)).toEqual({ kind: "node", id: uuid(3) });
});

test("an agent has its label, and its alias where that says more", () => {
	expect(agentName({ nodeLabel: "Frontend", nodeAlias: "ui" })).toBe("Frontend (ui)");
	expect(agentName({ nodeLabel: "Lead", nodeAlias: "lead" })).toBe("Lead");
	expect(agentName({ nodeLabel: "Read\u202Eme" })).toBe("Read⟨RLO⟩me");
	expect(agentName({})).toBeUndefined();
});

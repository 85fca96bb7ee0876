import { expect, test } from "vitest";
import { uuid } from "./run-fixtures";
import { remedyOf, type Wait, type WaitTree, waitTrees, waitWords } from "./run-waits";

const [LEAD, A, B] = [uuid(1), uuid(2), uuid(3)];

function wait(nodeId: string, reason: Wait["reason"], owner: Wait["owner"], ageMs = 1000): Wait {
	return { nodeId, reason, owner, ageMs, since: "2026-11-18T14:00:00.000Z" };
}

/** "approval(reply)" for a tree. */
function draw({ wait: { reason }, because }: WaitTree): string {
	return because.length === 0 ? reason : `${reason}(${because.map(draw).join(" ")})`;
}

test("root causes come first, the oldest before all, and under each what it keeps waiting", () => {
	const waits = [
		wait(LEAD, "reply", { kind: "node", nodeId: A }),
		wait(LEAD, "reply", { kind: "node", nodeId: B }),
		wait(A, "working", { kind: "program" }, 50),
		wait(B, "approval", { kind: "person" }, 9000),
	];
	expect(waitTrees({ waits, rootCauses: [2, 3], deadlocks: [] }).map(draw)).toEqual([
		"approval(reply)",
		"working(reply)",
	]);
});

test("a circle has no root cause, and is shown all the same", () => {
	const waits = [wait(A, "reply", { kind: "node", nodeId: B }), wait(B, "reply", { kind: "node", nodeId: A })];
	expect(waitTrees({ waits, rootCauses: [], deadlocks: [[A, B]] }).map(draw)).toEqual(["reply(reply)"]);
});

test("every wait is shown once, also if the answer names places that do not exist", () => {
	const waits = [wait(A, "no-input", { kind: "person" })];
	expect(waitTrees({ waits, rootCauses: [0, 0, 7], deadlocks: [] })).toHaveLength(1);
});

test("waits have words and, where a person can end them, a way", () => {
	const paused: Wait = { ...wait(A, "run-stopped", { kind: "person" }), runStatus: "paused", pausedReason: "budget" };
	expect(waitWords(paused)).toBe("the run is paused: the budget is used up");
	expect(remedyOf(paused)).toBe("resume");
	const failed: Wait = { ...wait(A, "failure", { kind: "person" }), detail: "no paper\nat all" };
	expect(waitWords(failed)).toBe("has failed: no paper");
	expect(remedyOf(failed)).toBe("inbox");
	expect(remedyOf(wait(A, "approval", { kind: "person" }))).toBe("inbox");
	expect(remedyOf(wait(A, "working", { kind: "program" }))).toBeNull();
});

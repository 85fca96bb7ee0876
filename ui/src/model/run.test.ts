import { describe, expect, test } from "vitest";
import {
	applyEvent,
	applyEvents,
	emptyRun,
	type RunEvent,
	type RunState,
	readEvent,
	runFromSnapshot,
	UNKNOWN_EVENTS_MAX,
} from "./run";
import { createdRun, eventOf, newNode, RUN, uuid } from "./run-fixtures";

const NODE = uuid(1);
const OTHER = uuid(2);
const TURN = uuid(3);
const TOOL = uuid(4);
const ENVELOPE = uuid(5);

function folded(...bodies: readonly object[]): RunState {
	return applyEvents(emptyRun(RUN), [createdRun(), ...bodies.map((body, at) => eventOf(at + 2, body))]);
}

const withNode = { type: "node.patch", nodeId: NODE, patch: newNode(NODE, "Worker") };
const started = {
	type: "turn.status",
	nodeId: NODE,
	turnId: TURN,
	status: "turn.started",
	consumed: [ENVELOPE],
	attempt: 1,
};

describe("a run", () => {
	test("begins with its first event or with a snapshot, and both agree", () => {
		const replayed = folded();
		expect(replayed.run?.title).toBe("Fix the test");
		const { run, nodes, edges, artifacts } = replayed;
		if (run === null) throw new Error("the run has no fields");
		expect(runFromSnapshot({ ...run, nodes, edges, artifacts, lastSeq: 1 })).toEqual(replayed);
	});

	test("keeps the same object when nothing happened, and folds no event twice", () => {
		const state = folded(withNode);
		expect(applyEvent(state, eventOf(2, { ...withNode, patch: { label: "Other" } }))).toBe(state);
		expect(applyEvents(state, [])).toBe(state);
	});

	test("is never changed: a later state shares what did not change", () => {
		const before = folded(withNode);
		const after = applyEvent(before, eventOf(3, { type: "node.patch", nodeId: NODE, patch: { status: "running" } }));
		expect(before.nodes[NODE]?.status).toBe("idle");
		expect(after.nodes[NODE]?.status).toBe("running");
		expect(after.nodes[NODE]?.label).toBe("Worker");
		expect(after.edges).toBe(before.edges);
		expect(after.lastSeq).toBe(3);
	});

	test("null clears a field", () => {
		const state = folded(
			{ type: "run.patch", patch: { status: "paused", pausedReason: "user" } },
			{ type: "run.patch", patch: { status: "running", pausedReason: null } },
		);
		expect(state.run).toMatchObject({ status: "running", pausedReason: null });
	});

	test("shows the open turn, its output and its tools, and nothing of them after its end", () => {
		const tool = { id: TOOL, name: "Bash", args: { command: "ls" } };
		const running = folded(
			withNode,
			started,
			{ type: "message.assistant.delta", nodeId: NODE, turnId: TURN, delta: "Hel" },
			{ type: "message.assistant.delta", nodeId: NODE, turnId: TURN, delta: "lo" },
			{ type: "tool.proposed", nodeId: NODE, turnId: TURN, tool },
			{ type: "tool.started", nodeId: NODE, turnId: TURN, tool },
		);
		expect(running.nodes[NODE]?.turnId).toBe(TURN);
		expect(running.live[NODE]).toMatchObject({ tail: "Hello", kind: "answer" });
		expect(running.tools[NODE]).toMatchObject([{ state: "running" }]);
		const over = applyEvent(running, eventOf(8, { ...started, status: "turn.completed", consumed: null }));
		expect(over.nodes[NODE]?.turnId).toBeNull();
		expect(over.live[NODE]).toBeUndefined();
		expect(over.tools[NODE]).toBeUndefined();
		expect(over.turns[NODE]).toMatchObject({ status: "turn.completed", consumed: [ENVELOPE] });
	});

	test("a handoff is queued, consumed, and queued again after an interruption", () => {
		const envelope = {
			kind: "handoff",
			id: ENVELOPE,
			fromNodeId: OTHER,
			toNodeId: NODE,
			createdAt: "2026-11-18T14:00:00Z",
			payload: { message: "Write it", artifacts: [], response: { expectation: "none" } },
		};
		const sent = folded(withNode, { type: "handoff.sent", nodeId: OTHER, envelope });
		expect(sent.envelopes[ENVELOPE]?.state).toEqual({ kind: "queued" });
		const consumed = applyEvent(sent, eventOf(4, started));
		expect(consumed.envelopes[ENVELOPE]?.state).toEqual({ kind: "consumed", turnId: TURN });
		const stopped = { ...started, status: "turn.interrupted", consumed: null, requeued: [ENVELOPE], detail: "by you" };
		const requeued = applyEvent(consumed, eventOf(5, stopped));
		expect(requeued.envelopes[ENVELOPE]?.state).toEqual({ kind: "queued" });
		expect(requeued.turns[NODE]?.detail).toBe("by you");
	});

	test("an approval is open until it is resolved", () => {
		const requested = {
			type: "approval.requested",
			nodeId: NODE,
			turnId: TURN,
			approvalId: uuid(9),
			kind: "tool",
			tool: { id: TOOL, name: "Bash", args: {} },
			context: "runs `ls`",
			createdAt: "2026-11-18T14:00:00Z",
			options: [],
		};
		const open = folded(withNode, requested);
		expect(Object.keys(open.approvals)).toEqual([uuid(9)]);
		const resolution = { status: "approved", scope: "once" };
		const resolved = applyEvent(open, eventOf(4, { type: "approval.resolved", approvalId: uuid(9), resolution }));
		expect(resolved.approvals).toEqual({});
	});

	test("usage adds up on the node and on the run", () => {
		const usage = { promptTokens: 10, completionTokens: 5, totalTokens: 15 };
		const report = { type: "telemetry.usage", nodeId: NODE, usage, costUsd: 0.5 };
		const state = folded(withNode, report, report);
		expect(state.nodes[NODE]?.usage).toMatchObject({ totalTokens: 30, costUsd: 1 });
		expect(state.run?.usage).toMatchObject({ promptTokens: 20, cachedTokens: 0 });
	});

	test("a silent program does not change what its agent said last", () => {
		const progress = { type: "node.progress", nodeId: NODE, status: "running", summary: "writes the parser" };
		const silence = { ...progress, summary: "silent", notice: "silence" };
		expect(folded(withNode, progress, silence).nodes[NODE]?.summary).toBe("writes the parser");
	});

	test("a deleted node takes its edges along", () => {
		const edge = { id: uuid(7), from: NODE, to: OTHER, bidirectional: true, type: "handoff", label: "", gate: false };
		const state = folded(
			withNode,
			{ type: "node.patch", nodeId: OTHER, patch: newNode(OTHER, "Lead") },
			{ type: "edge.created", edge },
			{ type: "node.deleted", nodeId: NODE, dropped: [] },
		);
		expect(Object.keys(state.nodes)).toEqual([OTHER]);
		expect(state.edges).toEqual({});
	});

	test("unknown events are kept, and only so many", () => {
		const strange = Array.from({ length: UNKNOWN_EVENTS_MAX + 5 }, () => ({ type: "node.dreamt", about: "sheep" }));
		const state = folded(...strange);
		expect(state.unknown).toHaveLength(UNKNOWN_EVENTS_MAX);
		expect(state.lastSeq).toBe(strange.length + 1);
	});

	test("a heartbeat has no number and moves none", () => {
		const state = folded(withNode);
		const { seq: _seq, ...beat } = eventOf(0, {
			type: "node.heartbeat",
			nodeId: NODE,
			connection: { status: "connected", streaming: true },
		});
		const after = applyEvent(state, beat as RunEvent);
		expect(after.nodes[NODE]?.connection?.streaming).toBe(true);
		expect(after.lastSeq).toBe(state.lastSeq);
	});
});

test("a frame that is no event is null", () => {
	expect(readEvent("{")).toBeNull();
	expect(readEvent("[]")).toBeNull();
	expect(readEvent('{"type":"x"}')).toBeNull();
	expect(readEvent('{"type":"x","runId":"r","ts":"t"}')).toMatchObject({ type: "x" });
});

import { describe, expect, test } from "vitest";
import { type Approval, applyEvents, emptyRun, type RunState } from "./run";
import { createdRun, eventOf, newNode, RUN, uuid } from "./run-fixtures";
import {
	inCreationOrder,
	leaderOf,
	linesByNode,
	nodeDetail,
	nodeGroup,
	nodeStateWords,
	type RunStateDetail,
	type RunStateFields,
	runStateWords,
} from "./run-words";

const NODE = uuid(1);
const TURN = uuid(50);
const NOW = Date.parse("2026-11-18T14:10:00.000Z");

function stateWith(...events: object[]): RunState {
	const born = eventOf(2, { type: "node.patch", nodeId: NODE, patch: newNode(NODE, "Worker") });
	return applyEvents(emptyRun(RUN), [createdRun(), born, ...events.map((event, at) => eventOf(at + 3, event))]);
}

/** "word: reason" of the one agent. */
function wordsOf(state: RunState): string {
	const node = state.nodes[NODE];
	if (node === undefined) throw new Error("there is no agent");
	const { word, reason } = nodeStateWords(node, nodeDetail(state, NODE), NOW);
	return `${word}: ${reason}`;
}

const patch = (fields: object) => ({ type: "node.patch", nodeId: NODE, patch: fields });
const turn = (status: string) => ({ type: "turn.status", nodeId: NODE, turnId: TURN, status });
const tool = { id: uuid(70), name: "Bash", args: { command: "make test" } };
const asks = (kind: string, context: string) => ({
	type: "approval.requested",
	nodeId: NODE,
	turnId: TURN,
	approvalId: uuid(80),
	kind,
	tool,
	context,
	createdAt: "2026-11-18T14:06:00.000Z",
	options: [],
});

describe("an agent's state has a reason", () => {
	test.each([
		["idle: nothing to do", []],
		["idle: 3 inputs wait for its turn", [patch({ inboxCount: 3 })]],
		["idle: asks you: Which port?", [asks("question", "Which port?")]],
		["running: starts its program", [turn("turn.started"), patch({ status: "running" })]],
		["running: waits for the model", [turn("waiting_for_model"), patch({ status: "running" })]],
		[
			"running: writes",
			[patch({ status: "running" }), { type: "message.assistant.delta", nodeId: NODE, turnId: TURN, delta: "He" }],
		],
		[
			"running: thinks",
			[
				patch({ status: "running" }),
				{ type: "message.assistant.thinking.delta", nodeId: NODE, turnId: TURN, delta: "H" },
			],
		],
		["running: uses Bash", [patch({ status: "running" }), { type: "tool.started", nodeId: NODE, turnId: TURN, tool }]],
		[
			"blocked: waits for your approval: run `make test`",
			[asks("tool", "run `make test`"), patch({ status: "blocked", block: { reason: "approvals" } })],
		],
		[
			"blocked: stalled: went in circles",
			[patch({ status: "blocked", block: { reason: "stall" }, summary: "went in circles" })],
		],
		[
			"blocked: wrote 2 files that it may not write",
			[patch({ status: "blocked", block: { reason: "violation", paths: ["a", "b"] } })],
		],
		["failed: status 3", [patch({ status: "failed", summary: "status 3" })]],
		["failed: its last turn ended in an error", [patch({ status: "failed" })]],
	])("%s", (words, events) => {
		expect(wordsOf(stateWith(...events))).toBe(words);
	});

	test("a rate limit names the time, and is over after it", () => {
		const limited = stateWith(patch({ retryAt: "2026-11-18T15:00:00.000Z", summary: "rate limited" }));
		expect(wordsOf(limited)).toMatch(/^idle: waits until \d\d:00: rate limited$/);
		expect(wordsOf(stateWith(patch({ retryAt: "2026-11-18T14:00:00.000Z" })))).toBe("idle: nothing to do");
	});

	test("hostile summaries are one safe line", () => {
		const state = stateWith(patch({ status: "failed", summary: "bad\u202e\u001b[31m\nsecond" }));
		const words = wordsOf(state);
		for (const hidden of ["\u202e", "\u001b", "\n"]) expect(words).not.toContain(hidden);
	});
});

describe("a run's state has a reason", () => {
	const run = (fields: Partial<RunStateFields>): RunStateFields => ({
		status: "running",
		phase: "EXECUTE",
		updatedAt: "2026-11-18T14:00:00.000Z",
		...fields,
	});
	test.each([
		["running: 1 decision waits for you", run({}), { running: 2, waiting: 1, agents: 3 }],
		["running: 2 agents work", run({}), { running: 2, waiting: 0, agents: 3 }],
		["running: no agent works", run({}), { running: 0, waiting: 0, agents: 3 }],
		["running: has no agent yet", run({}), { running: 0, waiting: 0, agents: 0 }],
		["running: verifies the work", run({ phase: "VERIFY" }), {}],
		["paused: you paused it", run({ status: "paused", pausedReason: "user" }), {}],
		["paused: the server was restarted", run({ status: "paused", pausedReason: "daemon-restart" }), {}],
		[
			"paused: stalled: the same output 5 times",
			run({ status: "paused", pausedReason: "stall" }),
			{ stall: { reason: "same-output", count: 5, summaries: [], turnIds: [] } },
		],
		["queued: waits until a turn is free", run({ status: "queued" }), {}],
	] satisfies readonly (readonly [string, RunStateFields, RunStateDetail])[])("%s", (expected, fields, detail) => {
		const { word, reason } = runStateWords(fields, detail);
		expect(`${word}: ${reason}`).toBe(expected);
	});
});

test("an open question puts its agent among those that wait", () => {
	const approval = { nodeId: NODE } as Approval;
	expect(nodeGroup({ id: NODE, status: "idle" }, [approval])).toBe("waiting");
	expect(nodeGroup({ id: NODE, status: "idle" }, [])).toBe("idle");
	expect(nodeGroup({ id: NODE, status: "blocked" }, [])).toBe("waiting");
});

test("the leader is the only orchestrator, else the only agent", () => {
	const worker = newNode(NODE, "Worker");
	const lead = newNode(uuid(2), "Lead", { roleTemplate: "Orchestrator" });
	expect(leaderOf({ [NODE]: worker })?.label).toBe("Worker");
	expect(leaderOf({ [NODE]: worker, [lead.id]: lead })?.label).toBe("Lead");
	expect(leaderOf({ [NODE]: worker, [uuid(3)]: newNode(uuid(3), "Other") })).toBeNull();
	expect(inCreationOrder({ [NODE]: worker, [lead.id]: lead }).map(({ label }) => label)).toEqual(["Lead", "Worker"]);
});

test("lines are summed over the diffs of an agent, and files counted once", () => {
	const diff = (id: number, added: number, files: string[]) => ({
		type: "artifact.created",
		artifact: {
			id: uuid(id),
			runId: RUN,
			nodeId: NODE,
			kind: "diff",
			name: "diff.patch",
			metadata: { added, removed: 1, filesChanged: files, summary: "", baseTree: "", headTree: "" },
		},
	});
	const { artifacts } = stateWith(diff(200, 3, ["a", "b"]), diff(201, 4, ["b"]));
	expect(linesByNode(artifacts).get(NODE)).toEqual({ added: 7, removed: 2, files: 2 });
	expect(linesByNode(artifacts)).toBe(linesByNode(artifacts));
});

import { describe, expect, test } from "vitest";
import type { RunEvent } from "./run";
import { eventOf, newNode, uuid } from "./run-fixtures";
import { applyTranscript, emptyTranscript, type Transcript, type TranscriptRow } from "./transcript";

const NODE = uuid(1);
const OTHER = uuid(2);
const TURN = uuid(10);

let seq = 0;
function on(body: object, turn: string | null = TURN): RunEvent {
	seq += 1;
	return eventOf(seq, { nodeId: NODE, ...(turn === null ? {} : { turnId: turn }), ...body });
}

const started = (consumed: string[] = []) => on({ type: "turn.status", status: "turn.started", consumed });
const ended = (status: string, more: object = {}) => on({ type: "turn.status", status, ...more });
const tool = (id: number) => ({ id: uuid(id), name: "Bash", args: { command: "ls" } });

function fold(...events: RunEvent[]): Transcript {
	return applyTranscript(emptyTranscript(NODE), events);
}

function row<Kind extends TranscriptRow["kind"]>(transcript: Transcript, kind: Kind) {
	const found = transcript.rows.find((each): each is Extract<TranscriptRow, { kind: Kind }> => each.kind === kind);
	if (found === undefined) throw new Error(`there is no row ${kind}`);
	return found;
}

function chat(id: number): RunEvent {
	const message = { id: uuid(id), nodeId: NODE, role: "user", content: "Hello", interrupt: false };
	return on({ type: "message.user", message }, null);
}

function handoff(id: number, from: string, to: string): RunEvent {
	const envelope = { id: uuid(id), fromNodeId: from, toNodeId: to, payload: { message: "Do it" } };
	return on({ type: "handoff.sent", envelope, nodeId: from }, null);
}

describe("a transcript", () => {
	test("a message waits until a turn reads it, and again when it is put back", () => {
		const waiting = fold(chat(30));
		expect(row(waiting, "message").readBy).toBeNull();
		const read = applyTranscript(waiting, [started([uuid(30)])]);
		expect(row(read, "message").readBy).toBe(TURN);
		const back = applyTranscript(read, [ended("turn.interrupted", { requeued: [uuid(30)], detail: "restart" })]);
		expect(row(back, "message").readBy).toBeNull();
		expect(row(back, "end")).toMatchObject({ status: "turn.interrupted", detail: "restart", requeued: 1 });
	});

	test("pieces of a text grow one row, and the whole text replaces them", () => {
		const growing = fold(
			started(),
			on({ type: "message.assistant.delta", delta: "Hel" }),
			on({ type: "message.assistant.delta", delta: "lo" }),
		);
		expect(row(growing, "text")).toMatchObject({ text: "Hello", state: "streaming" });
		const whole = applyTranscript(growing, [
			on({ type: "message.assistant.final", content: "Hello.", status: "final" }),
			on({ type: "message.assistant.delta", delta: "More" }),
		]);
		expect(whole.rows.map((each) => (each.kind === "text" ? each.text : each.kind))).toEqual([
			"turn",
			"Hello.",
			"More",
		]);
	});

	test("a text whose program is gone is interrupted with its turn", () => {
		const gone = fold(started(), on({ type: "message.assistant.delta", delta: "I fe" }), ended("turn.failed"));
		expect(row(gone, "text").state).toBe("interrupted");
		expect(gone.streaming).toBeNull();
	});

	test("a tool asks, is approved, runs and ends in one row", () => {
		const approval = {
			approvalId: uuid(50),
			kind: "tool",
			context: "run ls",
			createdAt: "",
			options: [],
			tool: tool(40),
		};
		const asking = fold(
			started(),
			on({ type: "tool.proposed", tool: tool(40) }),
			on({ type: "approval.requested", ...approval }),
		);
		expect(row(asking, "tool")).toMatchObject({ state: "asking", asked: { resolution: null } });
		const resolution = { status: "approved", scope: "once" };
		const done = applyTranscript(asking, [
			on({ type: "approval.resolved", approvalId: uuid(50), resolution }),
			on({ type: "tool.started", tool: tool(40) }),
			on({ type: "tool.completed", toolId: uuid(40), result: { ok: true, output: "a" }, durationMs: 3 }),
		]);
		expect(done.rows.filter((each) => each.kind === "tool")).toHaveLength(1);
		expect(row(done, "tool")).toMatchObject({ state: "done", durationMs: 3, asked: { resolution } });
		expect(row(asking, "tool").state).toBe("asking");
	});

	test("rows that did not change are the same objects", () => {
		const first = fold(chat(30), started([uuid(30)]));
		const second = applyTranscript(first, [on({ type: "message.assistant.delta", delta: "x" })]);
		expect(second.rows[0]).toBe(first.rows[0]);
		expect(second.rows[1]).toBe(first.rows[1]);
		expect(first.rows).toHaveLength(2);
	});

	test("two states that grow from one do not disturb each other", () => {
		const first = fold(started());
		const one = applyTranscript(first, [on({ type: "message.assistant.delta", delta: "one" })]);
		const two = applyTranscript(first, [on({ type: "message.assistant.delta", delta: "two" })]);
		expect(row(one, "text").text).toBe("one");
		expect(row(two, "text").text).toBe("two");
	});

	test("an older page before the same events is folded anew from the same beginning", () => {
		const empty = emptyTranscript(NODE);
		const older = [chat(31), chat(32), on({ type: "tool.proposed", tool: tool(41) })];
		const newer = [chat(33), on({ type: "tool.proposed", tool: tool(42) })];
		applyTranscript(empty, newer);
		const whole = applyTranscript(empty, [...older, ...newer]);
		expect(whole.rows.map(({ key }) => key)).toEqual([
			`input ${uuid(31)}`,
			`input ${uuid(32)}`,
			`turn ${TURN}`,
			`tool ${uuid(41)}`,
			`input ${uuid(33)}`,
			`tool ${uuid(42)}`,
		]);
	});

	test("handoffs come in, go out, or are about others", () => {
		const seen = fold(
			handoff(60, OTHER, NODE),
			handoff(61, NODE, OTHER),
			handoff(62, OTHER, OTHER),
			started([uuid(60)]),
		);
		const handoffs = seen.rows.flatMap((each) => (each.kind === "handoff" ? [[each.direction, each.state.kind]] : []));
		expect(handoffs).toEqual([
			["in", "consumed"],
			["out", "queued"],
		]);
	});

	test("what is sent is read when its receiver's turn begins", () => {
		const reading = eventOf(900, {
			type: "turn.status",
			nodeId: OTHER,
			turnId: uuid(11),
			status: "turn.started",
			consumed: [uuid(61)],
		});
		const seen = fold(handoff(61, NODE, OTHER), reading);
		expect(row(seen, "handoff").state).toEqual({ kind: "consumed", turnId: uuid(11) });
		expect(seen.rows).toHaveLength(1);
	});

	test("a turn's header has its cost, its prompts and its diff", () => {
		const artifact = (id: number, kind: string, name: string) => ({
			artifact: { id: uuid(id), kind, name, metadata: kind === "diff" ? { added: 2, removed: 0 } : null },
		});
		const seen = fold(
			started(),
			on({ type: "artifact.created", ...artifact(70, "prompt", "prompt.full.txt") }),
			on({ type: "artifact.created", ...artifact(71, "diff", "diff.patch") }),
			on({ type: "artifact.created", ...artifact(72, "report", "verification.json") }),
			on({ type: "telemetry.usage", usage: { totalTokens: 7 }, costUsd: 0.5 }),
			ended("turn.completed"),
		);
		const { turn } = row(seen, "turn");
		expect(turn).toMatchObject({ status: "turn.completed", tokens: 7, costUsd: 0.5, isWhole: true });
		expect([turn.promptFull?.id, turn.diff?.id]).toEqual([uuid(70), uuid(71)]);
		expect(row(seen, "artifact").artifact.name).toBe("verification.json");
	});

	test("a new session and the choice of a workspace are told, the first fields of an agent are not", () => {
		const patch = (fields: object) => on({ type: "node.patch", patch: fields }, null);
		const session = (id: string | null) => ({ session: { resetCommands: [], sessionId: id } });
		const seen = fold(
			patch(newNode(NODE, "Worker")),
			patch({ workspace: { kind: "worktree", branch: "b" } }),
			patch(session("one")),
			patch(session(null)),
			patch(session("two")),
		);
		const notices = seen.rows.flatMap((each) => (each.kind === "notice" ? [each.notice.kind] : []));
		expect(notices).toEqual(["workspace", "new-session"]);
	});

	test("a page that begins inside a turn says so", () => {
		const seen = fold(on({ type: "message.assistant.final", content: "late", status: "final" }));
		expect(row(seen, "turn").turn.isWhole).toBe(false);
	});
});

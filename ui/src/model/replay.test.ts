import { expect, test } from "vitest";
import { eventWords, nextStep, ReplayLog } from "./replay";
import { applyEvents, emptyRun, type RunEvent } from "./run";
import { createdRun, eventOf, newNode, RUN, uuid } from "./run-fixtures";

const NODE = uuid(1);

/** A run of one agent that counts: event n sets its summary to n. */
function logOf(count: number): RunEvent[] {
	const rest = Array.from({ length: Math.max(0, count - 2) }, (_, at) =>
		eventOf(at + 3, { type: "node.patch", nodeId: NODE, patch: { summary: String(at + 3) } }),
	);
	return [createdRun(), eventOf(2, { type: "node.patch", nodeId: NODE, patch: newNode(NODE, "Worker") }), ...rest];
}

test("the state of any moment is the fold of the events up to it, whichever way one comes", () => {
	const events = logOf(2500);
	const log = new ReplayLog(RUN);
	for (let at = 0; at < events.length; at += 700) log.add(events.slice(at, at + 700));
	for (const seq of [2500, 1, 2, 399, 400, 401, 1200, 1199, 2499, 0, 800, 9999]) {
		const folded = applyEvents(emptyRun(RUN), events.slice(0, Math.min(seq, events.length)));
		expect(log.stateAt(seq)).toEqual(folded);
	}
});

test("a page that overlaps adds nothing twice", () => {
	const events = logOf(10);
	const log = new ReplayLog(RUN);
	log.add(events.slice(0, 6));
	log.add(events.slice(3));
	expect(log.events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
	expect(log.lastSeq).toBe(10);
	expect(log.stateAt(10).nodes[NODE]?.summary).toBe("10");
});

test("steps leave streams out", () => {
	const delta = (seq: number) => eventOf(seq, { type: "message.assistant.delta", nodeId: NODE, delta: "x" });
	const events = [createdRun(), delta(2), delta(3), eventOf(4, { type: "run.phase", phase: "DONE" }), delta(5)];
	expect(nextStep(events, 1, 1)).toBe(4);
	expect(nextStep(events, 2, -1)).toBe(1);
	expect(nextStep(events, 4, 1)).toBeNull();
});

test("every event has words, and unknown ones their type", () => {
	expect(eventWords(eventOf(1, { type: "run.phase", phase: "DONE" }))).toBe("the run is done");
	expect(eventWords(eventOf(1, { type: "turn.status", status: "waiting_for_model" }))).toBe("waiting for model");
	expect(eventWords(eventOf(1, { type: "moon.rose" }))).toBe("moon.rose");
});

import { describe, expect, test } from "vitest";
import { HandoffLog, trafficOf } from "./handoffs";
import type { RunEdge } from "./run";
import { eventOf, RUN, uuid } from "./run-fixtures";

const [LEAD, A] = [uuid(1), uuid(2)];
const EDGE: RunEdge = {
	id: uuid(10),
	from: LEAD,
	to: A,
	bidirectional: true,
	type: "handoff",
	label: "task",
	gate: false,
};
const EDGES = { [EDGE.id]: EDGE };

const sent = (seq: number, id: number, from: string, to: string) =>
	eventOf(seq, {
		type: "handoff.sent",
		envelope: {
			id: uuid(id),
			kind: "handoff",
			fromNodeId: from,
			toNodeId: to,
			createdAt: "",
			payload: { message: "" },
		},
	});
const read = (seq: number, ...ids: number[]) =>
	eventOf(seq, { type: "turn.status", nodeId: A, turnId: uuid(60), status: "turn.started", consumed: ids.map(uuid) });

function traffic(log: HandoffLog) {
	return trafficOf(EDGES, log.envelopes).get(EDGE.id);
}

describe("the handoffs of an edge", () => {
	test("wait until a turn has read them", () => {
		const log = new HandoffLog(RUN);
		log.begin([sent(1, 21, LEAD, A), sent(2, 22, LEAD, A)]);
		expect(traffic(log)).toMatchObject({ waiting: 2, total: 2, newest: uuid(22) });
		log.add([read(3, 21, 22)]);
		expect(traffic(log)).toMatchObject({ waiting: 0, total: 2 });
	});

	test("that came while the past was fetched are counted once", () => {
		const log = new HandoffLog(RUN);
		log.add([sent(2, 22, LEAD, A), sent(3, 23, A, LEAD)]);
		expect(log.envelopes).toEqual({});
		log.begin([sent(1, 21, LEAD, A), sent(2, 22, LEAD, A)]);
		expect(traffic(log)).toMatchObject({ total: 3, newest: uuid(23), isNewestBack: true });
	});

	test("of other agents are not its own", () => {
		const log = new HandoffLog(RUN);
		log.begin([sent(1, 21, uuid(8), uuid(9))]);
		expect(traffic(log)).toBeUndefined();
	});

	test("are no concern of other events", () => {
		const log = new HandoffLog(RUN);
		log.begin([]);
		expect(log.add([eventOf(4, { type: "node.log", nodeId: A, lines: [] })])).toBe(false);
	});
});

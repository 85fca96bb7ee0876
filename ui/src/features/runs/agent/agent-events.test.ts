import { afterEach, expect, test, vi } from "vitest";
import { answerRequests } from "../../../../test/render";
import type { LiveRun } from "../../../api/live-run";
import type { RunEvent } from "../../../model/run";
import { eventOf, RUN, uuid } from "../../../model/run-fixtures";
import { timelineOptions } from "./agent-events";

afterEach(() => vi.unstubAllGlobals());

const [ME, OTHER] = [uuid(1), uuid(2)];
const EVENTS = `GET /api/runs/${RUN}/events`;
const MINE = "limit=400&nodeId=";
const RECEIVED = "limit=2000&types=handoff.sent%2Chandoff.held%2Cturn.status";

const log = (seq: number) => eventOf(seq, { type: "node.log", nodeId: ME, text: `line ${seq}` });
const reading = (seq: number, nodeId = OTHER) =>
	eventOf(seq, { type: "turn.status", nodeId, turnId: uuid(seq), status: "turn.started", consumed: [uuid(9)] });
const page = (events: readonly RunEvent[], nextCursor: number | null) => ({
	events,
	page: { hasMore: nextCursor !== null, nextCursor },
});

test("a timeline fetches the events of other agents only as far back as its own go", async () => {
	const { requests } = answerRequests({
		[`${EVENTS}?${MINE}${ME}`]: page([log(50), log(60)], 50),
		[`${EVENTS}?${RECEIVED}`]: page([reading(58), reading(59, ME), reading(61)], 55),
		[`${EVENTS}?${RECEIVED}&before=55`]: page([reading(40), reading(52)], 40),
		[`${EVENTS}?${RECEIVED}&before=40`]: page([reading(30)], null),
		[EVENTS]: page([log(35), log(45)], null),
	});
	const options = timelineOptions({ runId: RUN } as LiveRun, ME);
	const { signal } = new AbortController();
	const newest = await options.fetchPage(null, signal);
	expect(newest.events.map(({ seq }) => seq)).toEqual([50, 52, 58, 60, 61]);
	const queries = () =>
		requests.map(({ url }) => new URL(url).search.slice(1)).filter((each) => each.startsWith(RECEIVED));
	expect(queries()).toEqual([RECEIVED, `${RECEIVED}&before=55`]);
	const older = await options.fetchPage(50, signal);
	expect(older.events.map(({ seq }) => seq)).toEqual([30, 35, 40, 45]);
	expect(queries()).toEqual([RECEIVED, `${RECEIVED}&before=55`, `${RECEIVED}&before=40`]);
});

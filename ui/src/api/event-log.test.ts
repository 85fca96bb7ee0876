import { describe, expect, test } from "vitest";
import { emptyRun, type RunEvent } from "../model/run";
import { eventOf, RUN, uuid } from "../model/run-fixtures";
import { compact, EventLog, type EventPage } from "./event-log";
import type { LiveRunView } from "./live-run";

const NODE = uuid(1);
const log = (seq: number): RunEvent => eventOf(seq, { type: "node.log", nodeId: NODE, text: `line ${seq}` });
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

function setUp(pages: Readonly<Record<string, EventPage | Error>>, isWhole = false) {
	const asked: (number | null)[] = [];
	let view: LiveRunView = { status: "loading" };
	let moved: () => void = () => undefined;
	let arrive: (events: readonly RunEvent[]) => void = () => undefined;
	const events = new EventLog<readonly number[]>({
		run: {
			view: () => view,
			subscribe(listener) {
				moved = listener;
				return () => undefined;
			},
			subscribeEvents(listener) {
				arrive = listener;
				return () => undefined;
			},
		},
		isWhole,
		fold: { empty: [], apply: (seqs, more) => [...seqs, ...more.map(({ seq }) => seq ?? 0)] },
		keeps: ({ type }) => type === "node.log",
		async fetchPage(before) {
			asked.push(before);
			const page = pages[String(before)];
			if (page === undefined || page instanceof Error) throw page;
			return page;
		},
	});
	const show = () => {
		view = { status: "shown", state: emptyRun(RUN), isLive: true, asOf: 0 };
		moved();
	};
	const shown = () => {
		const now = events.view();
		return now.status === "shown" ? now : null;
	};
	return { events, asked, show, shown, arrive: (...more: RunEvent[]) => arrive(more) };
}

describe("a part of a run's events", () => {
	test("is fetched when the run is followed, and what came meanwhile is not lost or doubled", async () => {
		const { events, asked, show, shown, arrive } = setUp({ null: { events: [log(3), log(4)], before: null } });
		events.start();
		expect(asked).toEqual([]);
		show();
		arrive(log(4), log(5));
		await settled();
		arrive(log(6), eventOf(7, { type: "run.deleted" }), log(8));
		expect(shown()?.state).toEqual([3, 4, 5, 6, 8]);
		expect(shown()?.hasOlder).toBe(false);
	});

	test("older pages are put before, on demand, once", async () => {
		const { events, asked, show, shown } = setUp({
			null: { events: [log(8)], before: 8 },
			8: { events: [log(2)], before: null },
		});
		events.start();
		show();
		await settled();
		expect(shown()).toMatchObject({ state: [8], hasOlder: true });
		events.loadOlder();
		events.loadOlder();
		await settled();
		expect(shown()).toMatchObject({ state: [2, 8], hasOlder: false });
		events.loadOlder();
		expect(asked).toEqual([null, 8]);
	});

	test("a whole log fetches all pages", async () => {
		const { events, show, shown } = setUp(
			{
				null: { events: [log(8)], before: 8 },
				8: { events: [log(2)], before: 2 },
				2: { events: [log(1)], before: null },
			},
			true,
		);
		events.start();
		show();
		await settled();
		expect(shown()?.state).toEqual([1, 2, 8]);
	});

	test("after a gap in the numbers everything is fetched again", async () => {
		const { events, asked, show, shown, arrive } = setUp({ null: { events: [log(3), log(9)], before: null } });
		events.start();
		show();
		await settled();
		arrive(log(10));
		arrive(log(14));
		await settled();
		expect(asked).toEqual([null, null]);
		expect(shown()?.state).toEqual([3, 9]);
	});

	test("an older page that does not come leaves what is shown, and says why", async () => {
		const failure = new Error("gone");
		const { events, show, shown } = setUp({ null: { events: [log(8)], before: 8 }, 8: failure });
		events.start();
		show();
		await settled();
		events.loadOlder();
		await settled();
		expect(shown()).toMatchObject({ state: [8], isLoadingOlder: false, olderError: failure });
	});

	test("a first page that does not come can be tried again", async () => {
		const pages: Record<string, EventPage | Error> = { null: new Error("gone") };
		const { events, show, shown } = setUp(pages);
		events.start();
		show();
		await settled();
		expect(events.view().status).toBe("failed");
		pages.null = { events: [log(1)], before: null };
		events.retry();
		await settled();
		expect(shown()?.state).toEqual([1]);
	});
});

describe("compact events", () => {
	const piece = (seq: number, delta: string, turn = 10) =>
		eventOf(seq, { type: "message.assistant.delta", nodeId: NODE, turnId: uuid(turn), delta });

	test("the pieces of a text are one, and the whole text replaces them", () => {
		const kept = compact([], [piece(1, "a"), piece(2, "b"), piece(3, "c", 11)]);
		expect(kept.map((event) => ("delta" in event ? event.delta : ""))).toEqual(["ab", "c"]);
		const whole = eventOf(4, {
			type: "message.assistant.final",
			nodeId: NODE,
			turnId: uuid(11),
			content: "c!",
			status: "final",
		});
		expect(compact(kept, [whole]).map(({ type }) => type)).toEqual([
			"message.assistant.delta",
			"message.assistant.final",
		]);
	});
});

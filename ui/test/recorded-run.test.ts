/** The recorded story of a team: what is folded from its events is the snapshot that the server gives. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { applyEvents, emptyRun, type RunEvent } from "../src/model/run";
import type { RunOfApi } from "./e2e/recorded-runs";
import { comparable, stateOf } from "./run-snapshot";

const { events, snapshot, approvals }: RunOfApi = JSON.parse(readFileSync("../testdata/runs/story-a.api.json", "utf8"));
const whole = applyEvents(emptyRun(snapshot.id), events);

test("the fold of all events is the snapshot", () => {
	expect(events.length).toBeGreaterThan(300);
	expect(stateOf(whole)).toEqual(comparable(snapshot));
	expect(whole.unknown).toEqual([]);
	expect(Object.values(whole.approvals)).toEqual(approvals);
});

test("however the events are cut into pages, and if a page comes twice, the state is the same", () => {
	for (const size of [1, 7, 100]) {
		let state = emptyRun(snapshot.id);
		for (let at = 0; at < events.length; at += size) {
			const page = events.slice(at, at + size);
			state = applyEvents(applyEvents(state, page), page);
		}
		expect(state).toEqual(whole);
	}
});

test("an event of an unknown type anywhere is kept and changes nothing else", () => {
	const middle = Math.floor(events.length / 2);
	const strange = { ...events[middle], type: "moon.landed", seq: null } as unknown as RunEvent;
	const state = applyEvents(emptyRun(snapshot.id), events.toSpliced(middle, 0, strange));
	expect(state).toEqual({ ...whole, unknown: [strange] });
});

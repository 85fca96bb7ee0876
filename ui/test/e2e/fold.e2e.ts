/** What the UI folds from a run's events is the snapshot that the server gives, for runs that real programs made. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { applyEvents, emptyRun, type RunEvent, type RunState } from "../../src/model/run.ts";
import type { Schema } from "../../src/model/schema.ts";
import { type MadeRun, makeConflictRun, makeShopRun, scriptedConfig } from "./agent-runs.ts";
import { BINARY, type Harness, startHarness } from "./harness.ts";

let harness: Harness;
const dir = mkdtempSync(join(tmpdir(), "turnkeep-fold-"));
beforeAll(async () => {
	harness = await startHarness({ config: scriptedConfig(dir, BINARY) });
});
afterAll(async () => {
	await harness?.stop();
	rmSync(dir, { recursive: true, force: true });
});

async function eventsOf(run: MadeRun): Promise<RunEvent[]> {
	const events: RunEvent[] = [];
	for (let after = 0; ; ) {
		const path = `/api/runs/${run.id}/events?limit=200&after=${after}`;
		const page = await harness.api<Schema<"EventPage">>(path);
		events.push(...page.events);
		if (!page.page.hasMore) return events;
		after = page.page.nextCursor ?? after;
	}
}

/** The fields of a snapshot, without those that no event records and without those that have no value. */
function comparable(snapshot: object): unknown {
	const withoutConnections = (name: string, value: unknown) =>
		name === "connection" ? undefined : (value ?? undefined);
	return JSON.parse(JSON.stringify(snapshot), withoutConnections);
}

function stateOf({ run, nodes, edges, artifacts, lastSeq }: RunState): unknown {
	return comparable({ ...run, nodes, edges, artifacts, lastSeq });
}

const RUNS: [string, (run: Harness) => Promise<MadeRun>][] = [
	["completed run", (h) => makeShopRun(h.api, join(h.workDir, "shop"))],
	["run that waits", (h) => makeConflictRun(h.api, join(h.workDir, "notes"))],
];

test.each(RUNS)("a %s", async (_name, make) => {
	const run = await make(harness);
	const events = await eventsOf(run);
	const { run: snapshot } = await harness.api<{ run: Schema<"RunView"> }>(`/api/runs/${run.id}`);
	expect(events.at(-1)?.seq).toBe(snapshot.lastSeq);
	const whole = applyEvents(emptyRun(run.id), events);
	expect(stateOf(whole)).toEqual(comparable(snapshot));
	expect(whole.unknown).toEqual([]);
	const { approvals } = await harness.api<Schema<"ApprovalList">>(`/api/approvals?runId=${run.id}`);
	expect(Object.values(whole.approvals)).toEqual(approvals.map(({ approval }) => approval));
	// However the events are cut into frames, the state is the same.
	const oneByOne = events.reduce((state, event) => applyEvents(state, [event]), emptyRun(run.id));
	expect(oneByOne).toEqual(whole);
});

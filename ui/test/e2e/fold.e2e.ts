/** What the UI folds from a run's events is the snapshot that the server gives, for runs that real programs made. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { applyEvents, emptyRun } from "../../src/model/run.ts";
import { comparable, stateOf } from "../run-snapshot.ts";
import { type MadeRun, makeConflictRun, makeShopRun, scriptedConfig } from "./agent-runs.ts";
import { BINARY, type Harness, startHarness } from "./harness.ts";
import { apiFile, playRecords, readRun } from "./recorded-runs.ts";

let harness: Harness;
const dir = mkdtempSync(join(tmpdir(), "turnkeep-fold-"));
beforeAll(async () => {
	harness = await startHarness({ config: scriptedConfig(dir, BINARY) });
});
afterAll(async () => {
	await harness?.stop();
	rmSync(dir, { recursive: true, force: true });
});

const RUNS: [string, (run: Harness) => Promise<MadeRun>][] = [
	["completed run", (h) => makeShopRun(h.api, join(h.workDir, "shop"))],
	["run that waits", (h) => makeConflictRun(h.api, join(h.workDir, "notes"))],
];

test.each(RUNS)("a %s", async (_name, make) => {
	const run = await make(harness);
	const { events, snapshot, approvals } = await readRun(harness, run.id);
	expect(events.at(-1)?.seq).toBe(snapshot.lastSeq);
	const whole = applyEvents(emptyRun(run.id), events);
	expect(stateOf(whole)).toEqual(comparable(snapshot));
	expect(whole.unknown).toEqual([]);
	expect(Object.values(whole.approvals)).toEqual(approvals);
	// However the events are cut into frames, the state is the same.
	const oneByOne = events.reduce((state, event) => applyEvents(state, [event]), emptyRun(run.id));
	expect(oneByOne).toEqual(whole);
});

test("the recorded story, as the API shows it, is the one that the fold is tested with", async () => {
	const shown = await readRun(harness, await playRecords(harness, "story-a"));
	// Where the server of this test keeps its files is no part of the story.
	const text = JSON.stringify(shown, null, "\t").replaceAll(harness.dataDir, "/data");
	if (process.env.UPDATE === "1") writeFileSync(apiFile("story-a"), `${text}\n`);
	expect(JSON.parse(text)).toEqual(JSON.parse(readFileSync(apiFile("story-a"), "utf8")));
});

/** Every screen of the UI with real data: opened, in both themes, on a phone, and at a zoom of 200 %. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { scriptedConfig } from "./agent-runs.ts";
import { type Everything, makeEverything } from "./everything.ts";
import { BINARY, type Harness, startHarness } from "./harness.ts";
import {
	axeFaults,
	controlsOutOfReach,
	PHONE,
	sidewaysPixels,
	squeezedCells,
	untilLoaded,
	WIDE,
	ZOOMED,
} from "./page-checks.ts";

const scripts = mkdtempSync(join(tmpdir(), "turnkeep-scripts-"));
let harness: Harness;
let everything: Everything;

beforeAll(async () => {
	const roots = `[runs]\nfs_roots = [${JSON.stringify(tmpdir())}]\n`;
	harness = await startHarness({ config: scriptedConfig(scripts, BINARY) + roots });
	everything = await makeEverything(harness);
});
afterAll(async () => {
	everything?.end();
	await harness?.stop();
	rmSync(scripts, { recursive: true, force: true });
});

/** The screens whose name begins with one of these words. They are known when the server is filled. */
const AREAS = {
	inbox: /^inbox/,
	runs: /^(runs|new run|run)\b/,
	"an agent": /^agent/,
	"the parts of a run": /^(edge|changes|why|replay|go)/,
	sessions: /^(session|terminal|captured)/,
	ledgers: /^(ledger|entry|people|person)/,
	history: /^(histor|turn|compare|blob)/,
	system: /^(system|sign-in)/,
};

const screensOf = (area: RegExp) => Object.entries(everything.screens).filter(([name]) => area.test(name));

async function open(path: string) {
	await harness.open(path);
	await harness.connected();
	await untilLoaded(harness.page);
	return harness.page;
}

test("each screen belongs to one area", () => {
	for (const name of Object.keys(everything.screens)) {
		const areas = Object.values(AREAS).filter((area) => area.test(name));
		expect([name, areas.length]).toEqual([name, 1]);
	}
});

test.each(Object.entries(AREAS))("%s: opens, fits a phone, and axe finds nothing serious", async (_, area) => {
	harness.consoleErrors.length = 0;
	for (const [name, path] of screensOf(area)) {
		await harness.page.setViewportSize(WIDE);
		const page = await open(path);
		expect([name, await page.locator("main h1, header h1").count()]).toEqual([name, 1]);
		expect([name, await page.getByText("This screen failed").count()]).toEqual([name, 0]);
		expect([name, await axeFaults(page)]).toEqual([name, []]);
		await page.setViewportSize(PHONE);
		await untilLoaded(page);
		expect([name, "on a phone", await axeFaults(page)]).toEqual([name, "on a phone", []]);
		expect([name, await sidewaysPixels(page)]).toEqual([name, 0]);
		expect([name, await squeezedCells(page)]).toEqual([name, []]);
	}
	expect(harness.consoleErrors).toEqual([]);
});

test("histories of runs name the agents and runs that they belong to, on a phone too", async () => {
	for (const viewport of [WIDE, PHONE]) {
		await harness.page.setViewportSize(viewport);
		const page = await open("/history");
		const table = page.getByRole("table", { name: "From runs" });
		const row = table.getByRole("row").filter({ has: page.getByRole("link", { name: /^agent Printer/ }) });
		await row.getByRole("link", { name: /^run Read and print orders/ }).waitFor();
		expect(await table.getByText("turnkeep.node=").count()).toBe(0);
	}
});

test("a title names the object, what it belongs to, and how much waits", async () => {
	await harness.page.setViewportSize(WIDE);
	const page = await open(everything.screens.changes ?? "");
	await expect.poll(() => page.title()).toBe("(1) Changes · Read and print orders · Turnkeep");
	await open(everything.screens["agent timeline"] ?? "");
	await expect.poll(() => page.title()).toBe("(1) Printer · Read and print orders · Turnkeep");
});

test.each(Object.entries(AREAS))("%s: at 200 % nothing is out of reach", async (_, area) => {
	await harness.page.setViewportSize(ZOOMED);
	for (const [name, path] of screensOf(area)) {
		const page = await open(path);
		expect([name, await sidewaysPixels(page)]).toEqual([name, 0]);
		// Polled, because parts of a page come after the page.
		await expect.poll(async () => [name, await controlsOutOfReach(page)]).toEqual([name, []]);
	}
});

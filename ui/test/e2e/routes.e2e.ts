/** Every route opens on an empty server, without an error and with exactly two long-lived connections at most. */

import type { Request } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EMPTY_SCREENS } from "./everything.ts";
import { type Harness, startHarness } from "./harness.ts";

const UUID = "6f0a2d0e-8a3b-4c5d-9e1f-001122334455";
/** These name things that an empty server does not have: they say so. */
const MISSING = [
	`/runs/${UUID}`,
	`/runs/${UUID}/agents/${UUID}/timeline`,
	`/runs/${UUID}/turns/${UUID}`,
	`/runs/${UUID}/edges/${UUID}`,
	`/runs/${UUID}/changes`,
	`/runs/${UUID}/why`,
	`/runs/${UUID}/replay?seq=3`,
	"/sessions/review",
	"/sessions/review/turns/3",
	"/ledgers/nowhere",
	"/ledgers/default/entries/e_13p0m06cwpf109bwv05yzd9f6c",
	"/history/12",
	"/history/12/turns/3",
	`/blobs/${"a".repeat(64)}`,
	"/go/turn%3A7",
	"/no/such/page",
];

let harness: Harness;
beforeAll(async () => {
	harness = await startHarness();
});
afterAll(() => harness?.stop());

/** A failed fetch is logged by the browser itself, also where 404 is the expected answer. */
const isNotAnswer = (error: string) => !/Failed to load resource: .* 404/.test(error);

test.each(Object.values(EMPTY_SCREENS))("%s opens", async (path) => {
	harness.consoleErrors.length = 0;
	await harness.open(path);
	await harness.connected();
	await harness.page.waitForLoadState("load");
	expect(await harness.page.locator("h1").count()).toBe(1);
	expect(await harness.page.locator("main").count()).toBe(1);
	expect(await harness.page.getByText("This screen failed").count()).toBe(0);
	expect(await harness.page.title()).toMatch(/ · Turnkeep$/);
	expect(harness.consoleErrors.filter(isNotAnswer)).toEqual([]);
	await harness.screenshot(`empty${path.replace(/[^a-z]+/g, "-").replace(/-$/, "") || "-inbox"}`);
});

test.each(MISSING)("%s says what is missing", async (path) => {
	harness.consoleErrors.length = 0;
	await harness.open(path);
	await harness.connected();
	await harness.page
		.getByRole("main")
		.getByText(/not found|deleted|no such|not known/i)
		.first()
		.waitFor();
	expect(await harness.page.getByText("This screen failed").count()).toBe(0);
	expect(harness.consoleErrors.filter(isNotAnswer)).toEqual([]);
});

test("the words of an empty ledger stand together", async () => {
	await harness.open("/ledgers/default");
	const title = await harness.page.getByRole("heading", { name: "No entries yet" }).boundingBox();
	const command = await harness.page.locator("main pre").boundingBox();
	expect((command?.y ?? Number.NaN) - (title?.y ?? 0)).toBeLessThan(150);
	expect(command?.height).toBeLessThan(60);
});

test("a run's page holds two connections, any other page one, and leaving it closes its own", async () => {
	const { page } = harness;
	const { run } = await harness.api<{ run: { id: string } }>("/api/runs", {
		body: { cwd: harness.workDir, goal: "Look around" },
	});
	const streams = new Set<Request>();
	let sockets = 0;
	page.on("request", (request) => {
		if (request.url().endsWith("/v1/events")) streams.add(request);
	});
	page.on("requestfailed", (request) => streams.delete(request));
	page.on("requestfinished", (request) => streams.delete(request));
	page.on("websocket", (socket) => {
		sockets += 1;
		socket.on("close", () => {
			sockets -= 1;
		});
	});
	await harness.open("/runs");
	await harness.connected();
	expect([streams.size, sockets]).toEqual([1, 0]);
	await harness.open(`/runs/${run.id}`);
	await harness.connected();
	await expect.poll(() => [streams.size, sockets]).toEqual([1, 1]);
	await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "History" }).click();
	// A run is kept for a moment, for tabs that follow each other.
	await expect.poll(() => [streams.size, sockets], { timeout: 10_000 }).toEqual([1, 0]);
});

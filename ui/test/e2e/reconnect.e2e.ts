/** The server is killed as by a loss of power, and started again: the page says so, keeps what was typed, and goes on. */

import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeRepository } from "./agent-runs.ts";
import { type Harness, startHarness } from "./harness.ts";

let h: Harness;
beforeAll(async () => {
	h = await startHarness();
});
afterAll(() => h?.stop());

test("a page of a run goes on where it was, with the text that was typed", async () => {
	const { page } = h;
	const cwd = join(h.workDir, "shop");
	makeRepository(cwd, { "a.txt": "a\n" });
	const { run } = await h.api<{ run: { id: string } }>("/api/runs", { body: { cwd, goal: "Survive" } });
	const node = { label: "Coder", roleTemplate: "implementer", provider: "claude" };
	await h.api(`/api/runs/${run.id}/nodes`, { body: node });
	await h.open(`/runs/${run.id}?view=list`);
	await h.connected();
	const message = page.getByRole("textbox", { name: "Message to Coder" });
	await message.fill("Not sent yet");
	const send = page.getByRole("button", { name: "Send" });
	await expect.poll(() => send.getAttribute("aria-disabled")).toBeNull();

	await h.killServer();
	await page.locator('[data-connection="reconnecting"], [data-connection="stopped"]').waitFor();
	expect(await send.getAttribute("aria-disabled")).toBe("true");
	// Without a server the page keeps showing its last known state.
	await page.getByRole("heading", { name: "Survive" }).waitFor();

	await h.startServer();
	await h.connected();
	expect(await message.inputValue()).toBe("Not sent yet");
	await expect.poll(() => send.getAttribute("aria-disabled")).toBeNull();
	await h.api(`/api/runs/${run.id}`, { method: "PATCH", body: { title: "Survived" } });
	await page.getByRole("heading", { name: "Survived" }).waitFor();
});

test("a page of a ledger shows what was written while the server was away from it", async () => {
	const { page } = h;
	await h.open("/ledgers");
	await h.connected();
	await h.killServer();
	await page.locator('[data-connection="reconnecting"], [data-connection="stopped"]').waitFor();
	await h.startServer();
	await h.api("/v1/worlds", { body: { world_id: "payments", profile: "WORKSPACE", persons: [] } });
	await page.getByRole("link", { name: "payments" }).waitFor();
});

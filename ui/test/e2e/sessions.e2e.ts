/** Wrapped terminals in a real browser: a real bash in a pseudo terminal, its captured turns, and its shared screen. */

import type { ChildProcess } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, startHarness } from "./harness.ts";
import { axeFaults } from "./page-checks.ts";
import { sessionCalled, wrapTerminal } from "./terminals.ts";

let harness: Harness;
const terminals: ChildProcess[] = [];

/** Wraps a program until the tests end. */
function wrap(args: readonly string[]): ChildProcess {
	const terminal = wrapTerminal(harness, args);
	terminals.push(terminal);
	return terminal;
}

const called = (name: string) => sessionCalled(harness, name);
const turnsOf = async (name: string) => (await called(name))?.turns ?? -1;

beforeAll(async () => {
	harness = await startHarness();
});
afterAll(async () => {
	for (const terminal of terminals) terminal.kill("SIGTERM");
	await harness?.stop();
});

test("without a wrapped terminal the command that makes one is there", async () => {
	await harness.open("/sessions");
	await harness.page.getByText("turnkeep wrap -- claude").waitFor();
});

test("a wrapped terminal appears by itself, and its captured turns with their text as text", async () => {
	const { page } = harness;
	const review = wrap(["--share", "--name", "review", "--", "bash", "--norc"]);
	await page.getByRole("link", { name: "review" }).waitFor();
	await expect.poll(async () => (await called("review"))?.state, { timeout: 10_000 }).toBe("ready");
	review.stdin?.write("printf '<script>alert(1)</script> \\342\\200\\256evil\\n'\n");
	await expect.poll(() => turnsOf("review"), { timeout: 10_000 }).toBe(1);
	await page.getByRole("link", { name: "review" }).click();
	await page.getByRole("link", { name: /alert/ }).click();
	await page.getByRole("heading", { name: "review:1" }).waitFor();
	expect(await page.locator("main pre").textContent()).toContain("<script>alert(1)</script> RLOevil");
});

test("a captured turn is captured, kept, and delivered to a session that is chosen", async () => {
	const { page } = harness;
	const notes = wrap(["--name", "notes", "--", "cat"]);
	await expect.poll(() => turnsOf("notes"), { timeout: 10_000 }).toBe(0);
	await page.getByRole("button", { name: "Capture", exact: true }).click();
	await page
		.getByText(/is in the relay buffer now/)
		.first()
		.waitFor();
	await page.getByRole("button", { name: "Deliver…" }).click();
	const deliver = page.getByRole("button", { name: "Deliver review:1" });
	expect(await deliver.getAttribute("aria-description")).toBe("Choose the session that gets it");
	let typed = "";
	notes.stdout?.on("data", (piece: Buffer) => (typed += piece.toString()));
	await page.getByLabel("Session", { exact: true }).selectOption({ label: "notes: unknown" });
	await deliver.click();
	await page.getByText("Sent to the session's program").first().waitFor();
	await expect.poll(() => typed).toContain("<script>alert(1)</script>");
	await page.getByRole("button", { name: "Keep in History" }).click();
	await page
		.getByText(/is kept as turn 1 of history 1/)
		.first()
		.waitFor();
	const { contexts } = await harness.api<{ contexts: { labels: Record<string, string> }[] }>("/v1/contexts");
	expect(contexts[0]?.labels.name).toBe("review");
});

test("a shared terminal shows its screen and what comes; a private one says how to share it", async () => {
	const { page } = harness;
	await harness.open("/sessions/review?view=terminal");
	await page.getByText("live", { exact: false }).first().waitFor();
	await expect.poll(() => page.locator(".xterm-rows").textContent()).toContain("<script>");
	terminals[0]?.stdin?.write("echo fresh words\n");
	await page
		.locator(".xterm-rows > div")
		.filter({ hasText: /^fresh words\s*$/ })
		.waitFor();
	await page.keyboard.type("exit\n");
	await harness.open("/sessions/notes?view=terminal");
	await page.getByText("This terminal is private").waitFor();
	expect((await called("review"))?.connected).toBe(true);
});

test("a session that does not exist is not found", async () => {
	await harness.open("/sessions/nobody");
	await harness.page.getByRole("heading", { name: "Not found" }).waitFor();
});

test("in both themes, axe finds nothing serious", async () => {
	for (const path of ["/sessions", "/sessions/review", "/sessions/review?view=terminal", "/sessions/review/turns/1"]) {
		await harness.open(path);
		await harness.connected();
		expect(await axeFaults(harness.page), path).toEqual([]);
	}
	expect(harness.consoleErrors).toEqual([]);
});

test("a session that has ended says so, and keeps its captured turns", async () => {
	const { page } = harness;
	terminals[0]?.stdin?.write("exit\n");
	await harness.open("/sessions/review?view=terminal");
	await page.getByRole("heading", { name: "The session has ended" }).waitFor();
	await page.getByText("its turns are still kept").first().waitFor();
	const paste = page.getByRole("button", { name: "Paste the buffer here…" });
	expect(await paste.getAttribute("aria-description")).toBe("The session has ended: its program takes no text");
	await page.getByRole("link", { name: /Captured turns/ }).click();
	await page.getByRole("link", { name: /alert/ }).waitFor();
});

/** One agent, one turn, one connection and the changes of a run: with scripted agents that really work in worktrees. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
	agentPath,
	edgeTo,
	firstTurn,
	type MadeRun,
	makeConflictRun,
	makeHostileRun,
	makeShopRun,
	scriptedConfig,
} from "./agent-runs.ts";
import { BINARY, type Harness, startHarness } from "./harness.ts";

const scripts = mkdtempSync(join(tmpdir(), "turnkeep-scripts-"));
let harness: Harness;
let shop: MadeRun;
let conflict: MadeRun;
let hostile: MadeRun;

beforeAll(async () => {
	harness = await startHarness({ config: scriptedConfig(scripts, BINARY) });
	const dir = (name: string) => join(harness.workDir, name);
	[shop, conflict, hostile] = await Promise.all([
		makeShopRun(harness.api, dir("shop")),
		makeConflictRun(harness.api, dir("conflict")),
		makeHostileRun(harness.api, dir("hostile")),
	]);
});
afterAll(async () => {
	await harness?.stop();
	rmSync(scripts, { recursive: true, force: true });
});

async function open(path: string) {
	await harness.open(path);
	await harness.connected();
	return harness.page;
}

test("a timeline has the handoff, the thought, the tools with their results, the approval and the diff", async () => {
	const page = await open(agentPath(shop, "parser"));
	const list = page.getByRole("list", { name: "Timeline of Parser" });
	await list.getByText("Write the parser.").waitFor();
	await list.getByText("You approved it").waitFor();
	expect(await list.getByText("full prompt").count()).toBe(1);
	const tool = list.locator("summary", { hasText: "cat src/main.py" });
	expect(await list.getByText("print(parser.parse").count()).toBe(0);
	await tool.click();
	await list.getByText("print(parser.parse('1'))").waitFor();
	expect(await list.locator("details[open]").count()).toBe(1);
	await list.getByRole("link", { name: "1 file" }).click();
	await page.getByText("def parse(text):").waitFor();
	expect(page.url()).toContain("/diffs?turn=");
});

test("an approval is denied in place, with words, and the agent goes on as it says", async () => {
	const page = await open(agentPath(conflict, "tess"));
	const list = page.getByRole("list", { name: "Timeline of Tester" });
	await list.getByRole("button", { name: "Deny…" }).click();
	await list.getByLabel("Why not? The agent reads it.").fill("Keep the notes");
	await list.getByRole("button", { name: "Deny", exact: true }).click();
	await list.getByText("You denied it in the web UI: Keep the notes").waitFor();
	await list.getByText("Then I leave them.").waitFor();
	await page
		.locator("header", { has: page.getByRole("heading", { level: 1 }) })
		.getByText("nothing to do")
		.waitFor();
});

test("a message that the program cannot answer fails in sight, and can be tried again", async () => {
	const page = await open(agentPath(conflict, "bob"));
	await page.getByLabel("Message to Second writer").fill("Something unheard of");
	await page.reload();
	await harness.connected();
	const box = page.getByLabel("Message to Second writer");
	expect(await box.inputValue()).toBe("Something unheard of");
	await page.getByRole("button", { name: "Send to Second writer" }).click();
	await page.getByText("✕ The turn failed").waitFor();
	expect(await box.inputValue()).toBe("");
	await page.getByRole("button", { name: "Try the turn again" }).waitFor();
});

test("all turns together are one diff, and a line leads to the person who asked for it", async () => {
	const page = await open(agentPath(shop, "printer", "diffs"));
	await page.getByText("# A line ends with a newline.").waitFor();
	expect(await page.getByText("return str(order)", { exact: true }).count()).toBe(0);
	await page.getByRole("button", { name: "Why is line 2 of src/printer.py here?" }).click();
	const panel = page.getByRole("region", { name: "Why is this here?" });
	await panel.getByText("The chain ends at a person.").waitFor();
	expect(await panel.getByText("Add the newline at the end.").count()).toBeGreaterThan(0);
});

test("a turn without changes says so", async () => {
	const page = await open(agentPath(shop, "lead", "diffs"));
	await page.getByRole("heading", { name: "No changes" }).waitFor();
});

test("a delta prompt shows what was sent and what the session knew", async () => {
	const page = await open(agentPath(shop, "printer", "prompt"));
	const prompt = page.getByRole("region", { name: "Prompt" });
	await prompt.getByRole("heading", { name: "Task" }).waitFor();
	expect(await prompt.getByText("not sent again").count()).toBe(2);
	await prompt.getByRole("button", { name: "As sent" }).click();
	await prompt.getByText("prompt.sent.txt").waitFor();
	await page.getByText("Add the newline at the end.").waitFor();
	expect(await prompt.getByText("You implement.").count()).toBe(0);
	await prompt.getByRole("button", { name: "Full text" }).click();
	await prompt.getByText("You implement.").waitFor();
	expect(page.url()).toContain("part=full");
});

test("a turn has its input, what happened, its prompt and its changes", async () => {
	const page = await open(`/runs/${shop.id}/turns/${await firstTurn(harness.api, shop, "printer")}`);
	await page.getByText("Write the printer.", { exact: true }).waitFor();
	expect(await page.getByText("$0.0214").count()).toBe(1);
	await page.getByRole("link", { name: "Changes" }).click();
	await page.getByText("not needed any more").waitFor();
});

test("a connection lists its handoffs, newest first", async () => {
	const page = await open(`/runs/${shop.id}/edges/${await edgeTo(harness.api, shop, "parser")}`);
	const list = page.getByRole("list", { name: "Handoffs over this connection" });
	await list.getByText("Write the parser.").waitFor();
	expect(await list.getByRole("article").first().textContent()).toContain("The parser is ready.");
	expect(await list.getByText("✓read").count()).toBe(2);
});

test("work that conflicts is not verified and not applied, and the file is named", async () => {
	const page = await open(`/runs/${conflict.id}/changes`);
	await page.getByRole("heading", { name: "Changed by more than one agent" }).waitFor();
	await page.getByRole("button", { name: "Verify with 1 command" }).click();
	await page.getByText("conflicts in: notes.md (ada, bob)").waitFor();
	await page.getByRole("button", { name: /^Apply 1 file to/ }).click();
	await page
		.getByRole("alertdialog")
		.or(page.getByRole("dialog"))
		.getByRole("button", { name: "Apply 1 file" })
		.click();
	await page.getByText("these files conflict: notes.md", { exact: false }).waitFor();
	expect(readFileSync(join(conflict.cwd, "notes.md"), "utf8")).toContain("Nothing yet.");
});

test("verified work is applied: the files are in the directory, and a commit message is offered", async () => {
	const page = await open(`/runs/${shop.id}/changes`);
	await page.getByText("Parser and printer are ready, with the newline.").waitFor();
	await page.getByText("No agent changed a file since.", { exact: false }).waitFor();
	await page.getByRole("button", { name: /^Apply 4 files to/ }).click();
	await page.getByRole("dialog").getByRole("button", { name: "Apply 4 files" }).click();
	await page.getByText("the commands passed on exactly this tree").waitFor();
	expect(readFileSync(join(shop.cwd, "src/printer.py"), "utf8")).toContain("# A line ends with a newline.");
	await page.getByText(`4 files by run ${shop.id.slice(0, 8)}.`, { exact: false }).waitFor();
});

test("a turn is reverted once, a second time changes nothing, and a file that was changed since is named", async () => {
	const page = await open(
		`${agentPath(conflict, "ada", "diffs")}?turn=${await firstTurn(harness.api, conflict, "ada")}`,
	);
	const revert = async () => {
		await page.getByRole("button", { name: "Revert 1 file…" }).click();
		await page.getByRole("dialog").getByRole("button", { name: "Revert 1 file" }).click();
	};
	await revert();
	await page.getByText("Restored as before the turn: notes.md").waitFor();
	await revert();
	await page.getByText("Already as before the turn: notes.md").waitFor();
	const worktree = join(harness.dataDir, "worktrees", conflict.id, conflict.nodes.ada ?? "");
	writeFileSync(join(worktree, "notes.md"), "# Notes\n\nMine.\n");
	await revert();
	await page.getByText("these were changed by somebody else", { exact: false }).waitFor();
});

test("nothing that a hostile agent printed is obeyed", async () => {
	harness.consoleErrors.length = 0;
	const asked: string[] = [];
	const note = (request: { url: () => string }) => asked.push(request.url());
	const page = await open(agentPath(hostile, "evil"));
	page.on("request", note);
	const list = page.getByRole("list", { name: /^Timeline of Evil/ });
	await list.getByText("Done.").waitFor();
	await list.locator("summary", { hasText: "head -c 1000000" }).first().click();
	await list.getByText("<b>bold</b>", { exact: false }).first().waitFor();
	await list.getByRole("button", { name: /^Show more/ }).waitFor();
	await list.locator("summary", { hasText: "Thought" }).click();
	expect(await page.title()).not.toBe("owned");
	expect(await list.locator("script, img, b").count()).toBe(0);
	await open(agentPath(hostile, "evil", "diffs"));
	await page.getByText("<script>alert(1)</script>").waitFor();
	await page.getByRole("button", { name: "Show the whole line", exact: false }).waitFor();
	page.off("request", note);
	expect(asked.filter((url) => url.includes("example.com"))).toEqual([]);
	expect(harness.consoleErrors).toEqual([]);
});

test("settings are saved, and only what was changed is sent", async () => {
	const page = await open(agentPath(shop, "parser", "settings"));
	await page.getByLabel("Name").fill("The parser");
	const [sent] = await Promise.all([
		page.waitForRequest((request) => request.method() === "PATCH"),
		page.getByRole("button", { name: "Save 1 change" }).click(),
	]);
	expect(sent.postDataJSON()).toEqual({ label: "The parser" });
	await page.getByRole("heading", { level: 1, name: "The parser" }).waitFor();
});

test("without its server a page keeps what it shows and refuses to act", async () => {
	const page = await open(agentPath(shop, "parser"));
	await page.getByLabel("Message to The parser").fill("Are you there?");
	await harness.stopServer();
	const send = page.getByRole("button", { name: "Send to The parser" });
	await expect.poll(() => send.getAttribute("aria-disabled")).toBe("true");
	expect(await page.getByText("You approved it").count()).toBe(1);
	await harness.startServer();
	await expect.poll(() => send.getAttribute("aria-disabled"), { timeout: 15_000 }).toBeNull();
	expect(await page.getByLabel("Message to The parser").inputValue()).toBe("Are you there?");
	await page.getByLabel("Message to The parser").fill("");
});

/** The inbox: approvals and questions of real scripted agents, answered in place, by mouse and by keyboard. */

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeRepository, until } from "./agent-runs.ts";
import { BINARY, type Harness, startHarness } from "./harness.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const SCRIPT = `
[[turn]]
when = "Run the tests."
steps = [
    { run = "echo tests", ask = true, else = [{ say = "Then I stop." }] },
    { say = "They ran." },
]

[[turn]]
when = "Print twice."
steps = [{ run = "echo once", ask = true }, { say = "Printed what I was told." }]

[[turn]]
when = "Ask me."
steps = [
    { call = "ask_user", args = { question = "Which colour?", options = ["Red", "Blue"] } },
    { say = "I wait for a colour." },
]

[[turn]]
when = "Blue"
steps = [{ say = "Blue it is." }]

[[turn]]
when = "Fail."
steps = [{ fail = "The paper is jammed" }]

[[turn]]
when = "Try without paper."
steps = [{ say = "That works." }]
`;

const scripts = mkdtempSync(join(tmpdir(), "turnkeep-inbox-"));
let harness: Harness;

beforeAll(async () => {
	const link = join(scripts, "turnkeep-agent-script");
	symlinkSync(BINARY, link);
	writeFileSync(join(scripts, "script.toml"), SCRIPT);
	const args = JSON.stringify(["--script", join(scripts, "script.toml")]);
	const provider = (name: string) => `[providers.${name}]\ncommand = ${JSON.stringify(link)}\nargs = ${args}\n`;
	harness = await startHarness({ config: provider("claude") + provider("codex") });
});
afterAll(async () => {
	await harness?.stop();
	rmSync(scripts, { recursive: true, force: true });
});

interface OneAgent {
	readonly run: string;
	readonly node: string;
}

let made = 0;

/** A run of one agent that gets a message. */
async function begin(message: string, provider = "claude"): Promise<OneAgent> {
	made += 1;
	const cwd = join(harness.workDir, `work-${made}`);
	makeRepository(cwd, { "a.txt": "a\n" });
	const { run } = await harness.api<{ run: { id: string } }>("/api/runs", { body: { cwd, goal: `Goal ${made}` } });
	const body = { label: "Worker", roleTemplate: "implementer", provider };
	const { node } = await harness.api<{ node: { id: string } }>(`/api/runs/${run.id}/nodes`, { body });
	await harness.api(`/api/runs/${run.id}/chat`, { body: { content: message } });
	return { run: run.id, node: node.id };
}

/** Opens the inbox of one run, which has one item of this kind. */
async function openItem(agent: OneAgent, kind: string) {
	await harness.open(`/?run=${agent.run}`);
	await harness.connected();
	const item = harness.page.getByRole("listitem", { name: new RegExp(`^${kind}:`) });
	await item.waitFor();
	return item;
}

/** Waits until the agent has said something. */
function untilSaid(agent: OneAgent, text: string): Promise<unknown> {
	return until(async () => {
		const path = `/api/runs/${agent.run}/events?types=message.assistant.final`;
		const { events } = await harness.api<{ events: { content: string }[] }>(path);
		return events.some((event) => event.content.includes(text));
	}, `“${text}”`);
}

test("an empty inbox shows a newcomer three ways to begin", async () => {
	await harness.open("/");
	for (const door of ["Start a run", "Wrap a terminal", "Open a ledger"]) {
		await harness.page.getByRole("link", { name: door }).waitFor();
	}
});

test("an approval is given by keyboard, and the item goes", async () => {
	const agent = await begin("Run the tests.");
	const item = await openItem(agent, "approval");
	await item.getByText("echo tests").first().waitFor();
	await harness.page.keyboard.press("j");
	await harness.page.keyboard.press("a");
	await untilSaid(agent, "They ran.");
	await item.waitFor({ state: "detached" });
	await harness.page.getByText("Nothing").first().waitFor();
});

test("a rule is told in plain words before it is made", async () => {
	const agent = await begin("Run the tests.");
	const item = await openItem(agent, "approval");
	await item.getByRole("button", { name: "Approve for longer" }).click();
	await harness.page.getByRole("menuitem", { name: "For this agent…" }).click();
	await item.getByText("begins with “echo tests”").waitFor();
	await item.getByRole("button", { name: "Approve for this agent" }).click();
	await untilSaid(agent, "They ran.");
	const { rules } = await harness.api<{ rules: { rule: { commandPrefix?: string } }[] }>("/api/rules");
	expect(rules.map(({ rule }) => rule.commandPrefix)).toEqual(["echo tests"]);
});

test("a call is denied with words, and the agent takes its other way", async () => {
	const agent = await begin("Run the tests.");
	const item = await openItem(agent, "approval");
	await item.getByRole("button", { name: "Deny with words…" }).click();
	await item.getByLabel(/Why not/).fill("Not now");
	await item.getByRole("button", { name: "Deny", exact: true }).last().click();
	await untilSaid(agent, "Then I stop.");
});

test("changed arguments are what runs", async () => {
	const agent = await begin("Print twice.");
	const item = await openItem(agent, "approval");
	await item.getByRole("button", { name: "Edit…" }).click();
	const field = item.getByLabel("Arguments as JSON");
	await field.fill("{ no JSON");
	await item.getByRole("button", { name: "Approve with these arguments", disabled: true }).waitFor();
	await field.fill(JSON.stringify({ command: "echo changed" }));
	const changes = item.getByRole("region", { name: "What you changed" });
	await expect.poll(() => changes.locator("code").allInnerTexts()).toContain('  "command": "echo changed"');
	await item.getByRole("button", { name: "Approve with these arguments" }).click();
	await untilSaid(agent, "Printed what I was told.");
	const path = `/api/runs/${agent.run}/events?types=tool.completed`;
	const { events } = await harness.api<{ events: { result: { output?: string } }[] }>(path);
	expect(JSON.stringify(events)).toContain("changed");
});

test("a program that takes no other arguments is denied with instructions, which it follows", async () => {
	const agent = await begin("Run the tests.", "codex");
	const item = await openItem(agent, "approval");
	await item.getByRole("button", { name: "Approve once" }).waitFor();
	expect(await item.getByRole("button", { name: "Edit…" }).count()).toBe(0);
	await harness.page.keyboard.press("j");
	await harness.page.keyboard.press("e");
	await item.getByLabel(/what to do instead/).fill("Run only the fast ones");
	await item.getByRole("button", { name: "Deny", exact: true }).last().click();
	await untilSaid(agent, "Then I stop.");
});

test("what has finished is removed from the inbox, and stays a run", async () => {
	const agent = await begin("Blue");
	await untilSaid(agent, "Blue it is.");
	await harness.api(`/api/runs/${agent.run}`, { method: "PATCH", body: { status: "completed" } });
	const item = await openItem(agent, "finished");
	await item.getByRole("button", { name: "Remove it from the inbox" }).click();
	await item.waitFor({ state: "detached" });
	await harness.open("/runs");
	await harness.page.getByRole("link", { name: `Goal ${made}` }).waitFor();
});

test("a question is answered with one of its options", async () => {
	const agent = await begin("Ask me.");
	const item = await openItem(agent, "question");
	await item.getByRole("button", { name: "Blue" }).click();
	await untilSaid(agent, "Blue it is.");
});

test("a failure takes a message", async () => {
	const agent = await begin("Fail.");
	const item = await openItem(agent, "failed");
	await item.getByText("The paper is jammed").first().waitFor();
	await item.getByText("Write a message").click();
	await item.getByLabel("Message").fill("Try without paper.");
	await item.getByRole("button", { name: "Send the message" }).click();
	await untilSaid(agent, "That works.");
	await item.waitFor({ state: "detached" });
});

test("the first answer wins, and the other tab says so", async () => {
	const agent = await begin("Run the tests.");
	const item = await openItem(agent, "approval");
	const { approvals } = await harness.api<{ approvals: { runId: string; approval: { approvalId: string } }[] }>(
		"/api/approvals",
	);
	const open = approvals.find((each) => each.runId === agent.run);
	const path = `/api/approvals/${open?.approval.approvalId}/resolve`;
	// The other tab answers while this one's request is on its way.
	await harness.page.route(`**${path}`, async (route) => {
		await harness.api(path, { body: { status: "denied", reason: "Not in my name" } });
		await route.continue();
	});
	await item.getByRole("button", { name: "Approve once" }).click();
	await harness.page.getByText("It was already denied over the API: Not in my name.").first().waitFor();
});

test("the other window hears that the web UI was first, and the agent has its name", async () => {
	const agent = await begin("Run the tests.");
	const item = await openItem(agent, "approval");
	await item.getByRole("link", { name: "agent Worker" }).waitFor();
	const other = await harness.context.newPage();
	await other.goto(`/?run=${agent.run}`);
	const approve = other.getByRole("button", { name: "Approve once" });
	await approve.waitFor();
	// This window sends its answer only after the other one has its own.
	await harness.page.route("**/api/approvals/*/resolve", async (route) => {
		await approve.click();
		await untilSaid(agent, "They ran.");
		await route.continue();
	});
	await item.getByRole("button", { name: "Deny", exact: true }).click();
	await harness.page.getByText("It was already approved in the web UI.").first().waitFor();
	await harness.page.unroute("**/api/approvals/*/resolve");
	await other.close();
	const path = `/api/runs/${agent.run}/events?types=approval.resolved`;
	const { events } = await harness.api<{ events: { resolution: { by: string } }[] }>(path);
	expect(events.map(({ resolution }) => resolution.by)).toEqual(["web"]);
});

test("an answer of the command line is one, here and for whoever asks there again", async () => {
	const agent = await begin("Run the tests.");
	const item = await openItem(agent, "approval");
	const { approvals } = await harness.api<{ approvals: { approval: { approvalId: string } }[] }>(
		`/api/approvals?runId=${agent.run}`,
	);
	const id = approvals[0]?.approval.approvalId ?? "";
	await harness.cli(["approvals", "deny", id, "--reason", "Too slow"]);
	await item.waitFor({ state: "detached" });
	await harness.open(`/runs/${agent.run}/agents/${agent.node}/timeline`);
	await harness.page.getByText("You denied it on the command line: Too slow").waitFor();
	const again = await harness.cli(["approvals", "approve", id]).catch((error: Error) => error.message);
	expect(again).toContain("the approval was denied already on the command line");
	expect(again).toContain("the reason was: Too slow");
});

test("w explains an approval, and a dot lists what can be done", async () => {
	const agent = await begin("Run the tests.");
	await openItem(agent, "approval");
	const { page } = harness;
	await page.keyboard.press("j");
	await page.keyboard.press("w");
	await page.getByText("The chain ends at a person.").waitFor();
	await page.keyboard.press("Escape");
	await page.getByRole("listitem", { name: /^approval:/ }).focus();
	await page.keyboard.press(".");
	await page.getByRole("dialog", { name: /^agent turn/ }).waitFor();
	await page.keyboard.press("Escape");
});

test("axe finds nothing serious, wide and narrow, light and dark", async () => {
	const agent = await begin("Run the tests.");
	await begin("Ask me.");
	await begin("Fail.");
	await openItem(agent, "approval");
	await harness.open("/");
	await harness.page.getByRole("listitem", { name: /^question:/ }).waitFor();
	await harness.page.getByRole("listitem", { name: /^failed:/ }).waitFor();
	for (const [scheme, width] of [["light", 1280] as const, ["dark", 390] as const]) {
		await harness.page.emulateMedia({ colorScheme: scheme });
		await harness.page.setViewportSize({ width, height: 844 });
		await harness.screenshot(`inbox-${scheme}-${width}`);
		// Evaluated, because the page’s policy forbids scripts in the page.
		await harness.page.evaluate(AXE);
		const serious = await harness.page.evaluate(async () => {
			type Results = { violations: { id: string; impact: string; nodes: { html: string }[] }[] };
			const { axe } = window as unknown as { axe: { run: (root: Document) => Promise<Results> } };
			const { violations } = await axe.run(document);
			const isSerious = (impact: string) => impact === "serious" || impact === "critical";
			return violations.filter(({ impact }) => isSerious(impact)).map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
		});
		expect(serious).toEqual([]);
	}
});

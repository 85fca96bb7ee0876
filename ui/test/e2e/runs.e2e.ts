/** Runs as a person uses them: started by the form, steered in the graph by keys, read as a list, asked why, replayed, forked. */

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeRepository, until } from "./agent-runs.ts";
import { BINARY, type Harness, startHarness } from "./harness.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const NOWHERE = "00000000-0000-4000-8000-000000000000";
const HOSTILE = "<img src=x onerror=\"document.title='owned'\"> \u202egnp.exe";

const SCRIPT = `
[agent]
usage = { input = 1200, output = 340, cost = 0.0142 }

[[turn]]
when = ["You lead this team", "Message from the user:"]
steps = [
    { say = "I split the work." },
    { call = "send_handoff", args = { to = "planner", message = "Write the plan." } },
    { call = "send_handoff", args = { to = "a", message = "Write the parser." } },
    { say = "Both are at work." },
]

[[turn]]
when = "Write the plan."
steps = [{ write = "docs/plan.md", content = "# Plan\\n" }, { say = "The plan is written." }]

[[turn]]
when = "Write the parser."
steps = [
    { run = "echo 3 passed", ask = "Run the tests?", else = [{ say = "I may not." }] },
    { say = "The parser is ready." },
]

[[turn]]
when = "crash"
steps = [{ crash = { code = 3, stderr = "fatal: out of luck" } }]

[[turn]]
repeat = true
steps = [{ say = "Noted." }]
`;

interface NodeView {
	readonly id: string;
	readonly alias?: string;
	readonly status: string;
}

const scripts = mkdtempSync(join(tmpdir(), "turnkeep-scripts-"));
let h: Harness;
let run: string;
let agents: Record<string, string>;

beforeAll(async () => {
	const [link, script] = [join(scripts, "turnkeep-agent-script"), join(scripts, "script.toml")];
	symlinkSync(BINARY, link);
	writeFileSync(script, SCRIPT);
	// The folders of the test are under the temporary directory, not under the home.
	const config = `[providers.claude]\ncommand = ${JSON.stringify(link)}\nargs = ["--script", ${JSON.stringify(script)}]\n[runs]\nfs_roots = [${JSON.stringify(tmpdir())}]\n`;
	h = await startHarness({ config });
	makeRepository(join(h.workDir, "shop"), { "README.md": "# Shop\n" });
});
afterAll(async () => {
	await h?.stop();
	rmSync(scripts, { recursive: true, force: true });
});

async function nodes(): Promise<NodeView[]> {
	const { run: view } = await h.api<{ run: { nodes: Record<string, NodeView> } }>(`/api/runs/${run}`);
	return Object.values(view.nodes);
}

const card = (alias: string) => h.page.locator(`button[data-agent="${agents[alias]}"]`);

test("an empty list leads to the form, and the form to a run whose lead has the goal", async () => {
	const { page } = h;
	await h.open("/runs");
	await page.getByText("No runs yet").waitFor();
	await page.getByRole("link", { name: "Start a run" }).first().click();
	await page.getByRole("heading", { name: "Start a run" }).waitFor();
	await h.connected();
	await page.getByLabel("Folder", { exact: true }).fill(h.workDir);
	await page.getByRole("button", { name: "shop" }).click();
	await page.getByText("A git repository").waitFor();
	await page.getByRole("textbox", { name: "Goal" }).fill("Add refunds to the shop\nWith tests.");
	await page.getByLabel("Team").selectOption("team");
	await page.getByText("Lead, Planner, Implementer A, Implementer B, Reviewer").waitFor();
	// The form is restored by its URL and what was typed.
	await page.reload();
	expect(await page.getByRole("textbox", { name: "Goal" }).inputValue()).toContain("With tests.");
	await page.getByRole("button", { name: "Start the run" }).click();
	await page.getByRole("heading", { name: "Add refunds to the shop" }).waitFor();
	run = new URL(page.url()).pathname.split("/")[2] ?? "";
	await until(
		async () => (await nodes()).some(({ alias, status }) => alias === "a" && status === "blocked"),
		"an approval",
	);
	agents = Object.fromEntries((await nodes()).map(({ alias, id }) => [alias ?? id, id]));
	await expect.poll(() => card("a").textContent()).toContain("blocked · waits for your approval");
	await expect.poll(() => page.locator(".react-flow__edgelabel-renderer").textContent()).toContain("task · ");
	await h.screenshot("runs-graph");
});

test("keys go through the graph, connect and ask before they delete", async () => {
	const { page } = h;
	await h.open(`/runs/${run}`);
	await h.connected();
	await card("lead").focus();
	await page.keyboard.press("o");
	const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
	await expect.poll(focused).toMatch(/^(Planner|Implementer|Reviewer)/);
	await page.keyboard.press("i");
	await expect.poll(focused).toMatch(/^Lead/);
	await page.keyboard.press("ArrowRight");
	await expect.poll(focused).not.toMatch(/^Lead/);
	await card("planner").focus();
	await page.keyboard.press("f");
	await page.keyboard.press("c");
	await page.getByRole("dialog", { name: "Connect Planner" }).waitFor();
	await page.getByLabel("Hands work to").selectOption({ label: "Reviewer" });
	await page.getByLabel("Label (optional)").fill("plan");
	await page.keyboard.press("Enter");
	await page.getByText("Connected Planner with Reviewer").first().waitFor();
	await card("planner").focus();
	await page.keyboard.press(".");
	await page.getByRole("button", { name: "Interrupt its turn" }).waitFor();
	await page.keyboard.press("Escape");
	await card("b").focus();
	await page.keyboard.press("Delete");
	await page.getByRole("dialog", { name: "Delete the agent “Implementer B (b)”?" }).waitFor();
	await page.getByRole("button", { name: "Delete agent" }).click();
	await expect.poll(() => card("b").count()).toBe(0);
	await card("planner").focus();
	await page.keyboard.press("Enter");
	await page.getByRole("link", { name: "Timeline" }).waitFor();
	expect(new URL(page.url()).searchParams.get("agent")).toBe(agents.planner);
	await page.reload();
	await page.getByRole("link", { name: "Timeline" }).waitFor();
});

test("an agent that comes moves none that stands, and hostile names are text", async () => {
	const { page } = h;
	await h.open(`/runs/${run}`);
	await h.connected();
	const places = () =>
		page.evaluate(() =>
			Object.fromEntries(
				[...document.querySelectorAll<HTMLElement>(".react-flow__node")].map((node) => [
					node.dataset.id,
					node.style.transform,
				]),
			),
		);
	await card("lead").waitFor();
	const before = await places();
	await page.getByRole("button", { name: "Add agent" }).click();
	const dialog = page.getByRole("dialog", { name: "Add an agent" });
	await dialog.getByLabel("Name").fill(HOSTILE);
	await dialog.getByLabel("Alias").fill("evil");
	await dialog.getByLabel("Role").selectOption("tester");
	await dialog.getByRole("button", { name: "Add agent" }).click();
	await expect.poll(async () => Object.keys(await places()).length).toBe(Object.keys(before).length + 1);
	expect(await places()).toMatchObject(before);
	expect(await page.title()).not.toBe("owned");
	expect(await page.locator("img").count()).toBe(0);
	await expect.poll(() => page.getByText("⟨RLO⟩").count()).toBeGreaterThan(0);
});

test("a message is kept until it is sent, and the run pauses, resumes and completes", async () => {
	const { page } = h;
	await h.open(`/runs/${run}`);
	await h.connected();
	await page.getByRole("combobox", { name: "To" }).selectOption({ label: "Reviewer" });
	await page.getByRole("textbox", { name: "Message to Reviewer" }).fill("crash");
	await page.getByRole("button", { name: "Send" }).click();
	await expect.poll(() => card("reviewer").textContent()).toContain("failed");
	await page.getByRole("button", { name: "Pause" }).click();
	await page.getByText("you paused it").waitFor();
	await page.getByRole("button", { name: "Resume" }).click();
	await expect.poll(() => page.getByText("you paused it").count()).toBe(0);
	await page.getByRole("button", { name: /^Mode: interactive/ }).click();
	await page.getByRole("menuitem", { name: /^Planning/ }).click();
	await page.getByRole("button", { name: "Mode: interactive · planning" }).waitFor();
	expect(await page.getByRole("button", { name: "Complete", exact: true }).count()).toBe(1);
});

test("a narrow window has a list by status, and the graph one tap away", async () => {
	const { page } = h;
	await page.setViewportSize({ width: 390, height: 844 });
	await h.open(`/runs/${run}`);
	await h.connected();
	await page.getByRole("region", { name: "Waits for you" }).waitFor();
	expect(await page.locator(".react-flow").count()).toBe(0);
	await h.screenshot("runs-list-narrow");
	await page.getByRole("button", { name: "Only what waits" }).click();
	await expect.poll(() => page.getByRole("region", { name: "Idle" }).count()).toBe(0);
	await page.getByRole("button", { name: "Graph", exact: true }).click();
	await page.locator(".react-flow").waitFor();
	expect(new URL(page.url()).search).toContain("view=graph");
	for (const path of ["/runs", "/runs/new", `/runs/${run}`, `/runs/${run}/why`, `/runs/${run}/replay?seq=20`]) {
		await h.open(path);
		await page.waitForLoadState("load");
		const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
		expect([path, tooWide]).toEqual([path, 0]);
	}
	await page.setViewportSize({ width: 1280, height: 800 });
});

test("why names the root cause first, and what waits because of it", async () => {
	const { page } = h;
	await h.open(`/runs/${run}`);
	await page.getByRole("link", { name: "Why is nothing happening?" }).click();
	const first = page.getByRole("list", { name: "Root causes first" }).locator("> li").first();
	await first.getByText("waits for an approval").waitFor();
	expect(await first.textContent()).toContain("Implementer A");
	expect(await first.getByText("waits for a reply").count()).toBe(1);
	await first.getByRole("link", { name: "Answer in the inbox" }).click();
	await expect.poll(() => new URL(page.url()).search).toContain("approval");
});

test("the log is replayed to any moment, and forked there", async () => {
	const { page } = h;
	await h.open(`/runs/${run}/replay?seq=1`);
	await h.connected();
	await page.getByText(/event 1 of/).waitFor();
	await page.keyboard.press("j");
	await page.getByText(/event 2 of/).waitFor();
	const slider = page.getByRole("slider", { name: "Place in the log" });
	await slider.press("End");
	await expect.poll(() => page.locator("button[data-agent]").count()).toBe(5);
	await expect.poll(() => new URL(page.url()).searchParams.get("seq")).toBe(await slider.inputValue());
	await page.getByRole("button", { name: /^Fork from event/ }).click();
	await page.getByLabel("Title of the fork").fill("A second try");
	await page.getByRole("button", { name: "Make the fork" }).click();
	await page.getByRole("heading", { name: "A second try" }).waitFor();
	await page.getByText("paused").first().waitFor();
	expect(new URL(page.url()).pathname).not.toContain(run);
	// The copy goes again, and says before what goes.
	await page.getByRole("button", { name: "More actions of the run" }).click();
	await page.getByRole("menuitem", { name: "Delete run…" }).click();
	await page.getByText("The records of the run stay in the log.").waitFor();
	await page.getByRole("button", { name: "Delete run" }).click();
	await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
	const titles = () => page.getByRole("table").getByRole("link").allInnerTexts();
	await expect.poll(titles).toEqual(["Add refunds to the shop"]);
});

test.each(["light", "dark"] as const)(
	"in %s, axe finds nothing serious, and nothing is logged as an error",
	async (colorScheme) => {
		const { page } = h;
		await page.emulateMedia({ colorScheme });
		h.consoleErrors.length = 0;
		const paths = [
			"/runs",
			"/runs/new",
			`/runs/${run}?agent=${agents.a}`,
			`/runs/${run}?view=list`,
			`/runs/${run}/why`,
			`/runs/${run}/replay?seq=30`,
		];
		// What is missing looks the same in both.
		const missing = [`/runs/${NOWHERE}`, `/runs/${NOWHERE}/why`, `/runs/${NOWHERE}/replay`];
		for (const path of [...paths, ...(colorScheme === "light" ? missing : [])]) {
			await h.open(path);
			await h.connected();
			const isMissing = path.includes(NOWHERE);
			if (isMissing) await page.getByText("There is no such run").waitFor();
			else await expect.poll(() => page.getByRole("status", { name: /^Loading/ }).count()).toBe(0);
			// Evaluated, because the policy of the page forbids scripts in the page.
			await page.evaluate(AXE);
			expect([path, await page.evaluate(seriousFaults)]).toEqual([path, []]);
		}
		await h.open(paths[2] ?? "");
		await page.getByRole("link", { name: "Timeline" }).waitFor();
		await h.screenshot(`runs-graph-drawer-${colorScheme}`);
		expect(h.consoleErrors.filter((error) => !/status of 404/.test(error))).toEqual([]);
	},
);

async function seriousFaults(): Promise<string[]> {
	interface Fault {
		readonly id: string;
		readonly impact: string | null;
		readonly nodes: readonly { readonly html: string }[];
	}
	const { axe } = window as unknown as { axe: { run(): Promise<{ violations: Fault[] }> } };
	const { violations } = await axe.run();
	const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
	return serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 300)).join(" | ")}`);
}

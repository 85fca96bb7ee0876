/**
 * `npm run newcomer`: walks the path of `docs/first-five-minutes.md` in a browser, and takes the times.
 *
 *     npm run newcomer -- --clone --write ../docs/first-five-minutes.md
 *
 * `--clone` begins with a fresh clone of this repository and `./x up --demo` in it, which builds everything. Without it,
 * `TURNKEEP_BIN` is used. The agent of the first real run is Claude Code, as `./x real-agents` installs it; its model is
 * a script on this machine, so that no account is needed and no model is waited for.
 */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Page } from "playwright-core";
import { makeRepository } from "../test/e2e/agent-runs.ts";
import { startDemo } from "../test/e2e/demo.ts";
import { startHarness } from "../test/e2e/harness.ts";
import { WIDE } from "../test/e2e/page-checks.ts";
import { startModel } from "./model-server.ts";
import { writeSection } from "./section.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const AGENT = join(ROOT, "target/tools/agents/node_modules/.bin/claude");
/** An agent program starts, and a machine may be busy. */
const AGENT_MS_MAX = 120_000;

interface Step {
	readonly what: string;
	readonly ms: number;
}

export async function main(args: string[]): Promise<void> {
	const options = { clone: { type: "boolean" }, json: { type: "boolean" }, write: { type: "string" } } as const;
	const { values } = parseArgs({ args, options });
	const steps = values.clone ? await walkFromClone() : [...(await walkDemo()), ...(await walkFirstRun())];
	if (values.json) {
		console.log(JSON.stringify(steps));
		return;
	}
	const text = describeSteps(steps);
	console.log(text);
	if (values.write !== undefined) writeSection(values.write, "times", text);
}

/** Builds a fresh clone, and walks the rest with its program. Which program is used is fixed when a process starts. */
async function walkFromClone(): Promise<Step[]> {
	const folder = mkdtempSync(join(tmpdir(), "turnkeep-newcomer-"));
	try {
		const clone = join(folder, "turnkeep");
		const steps = await cloneAndBuild(clone);
		const env = { ...process.env, TURNKEEP_BIN: join(clone, "target/release/turnkeep") };
		const script = fileURLToPath(new URL("run.mjs", import.meta.url));
		const walked = execFileSync(process.execPath, [script, "newcomer", "--json"], {
			env,
			encoding: "utf8",
			stdio: ["ignore", "pipe", "inherit"],
		});
		return [...steps, ...(JSON.parse(walked) as Step[])];
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

/** Takes the time of each step from the end of the one before. */
class Watch {
	readonly steps: Step[] = [];
	#last = performance.now();

	note(what: string): void {
		const now = performance.now();
		console.error(`${((now - this.#last) / 1000).toFixed(1)} s: ${what}`);
		this.steps.push({ what, ms: now - this.#last });
		this.#last = now;
	}
}

async function cloneAndBuild(clone: string): Promise<Step[]> {
	const watch = new Watch();
	execFileSync("git", ["clone", "--quiet", "--no-local", ROOT, clone]);
	watch.note("`git clone`");
	const args = ["up", "--demo", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--json"];
	const child = spawn("./x", args, { cwd: clone, stdio: ["ignore", "pipe", "inherit"] });
	const kill = () => void child.kill("SIGINT");
	process.once("exit", kill);
	await untilLink(child);
	watch.note("`./x up --demo`: it builds the web UI and the program, and prints the link");
	process.off("exit", kill);
	await endProcess(child);
	return watch.steps;
}

function untilLink(child: ChildProcess): Promise<void> {
	return new Promise((resolve, reject) => {
		let printed = "";
		child.stdout?.on("data", (piece: Buffer) => {
			printed += piece.toString();
			if (/"link":\s*"http/.test(printed)) resolve();
		});
		child.once("error", reject);
		child.once("exit", (code) => reject(new Error(`./x up --demo ended with ${code}`)));
	});
}

async function endProcess(child: ChildProcess): Promise<void> {
	const ended = new Promise((resolve) => child.once("exit", resolve));
	child.kill("SIGINT");
	await ended;
}

/** The demo: its link, the tour, the first approval. */
async function walkDemo(): Promise<Step[]> {
	const watch = new Watch();
	const demo = await startDemo(WIDE);
	watch.note("the built program starts the demo and fills it: a team has worked, and waits for you");
	try {
		const { page, link, things } = demo;
		await page.goto(link);
		const next = page.getByRole("button", { name: "Next", exact: true });
		await next.waitFor();
		watch.note("the link opens the inbox, and the tour begins");
		await next.click();
		const item = page
			.getByRole("listitem", { name: /^approval:/ })
			.filter({ has: page.locator(`[data-ref="node:${things.approval_node}"]`) });
		await item.getByRole("button", { name: "Approve once" }).click();
		await page.getByText("✓ Done.").waitFor();
		watch.note("its second step: the first approval is answered");
	} finally {
		await demo.stop();
	}
	return watch.steps;
}

/** A run of one's own: an agent that asks before it writes a file. */
async function walkFirstRun(): Promise<Step[]> {
	if (!existsSync(AGENT)) throw new Error(`${AGENT} is missing: ./x real-agents installs it`);
	const model = await startModel({ command: "echo Hello > hello.txt", says: "hello.txt says hello." });
	const watch = new Watch();
	const harness = await startHarness({ config: agentConfig(model.url), viewport: WIDE });
	try {
		writeFileSync(join(dirname(harness.dataDir), ".claude.json"), '{"hasCompletedOnboarding":true}');
		const folder = join(harness.workDir, "hello");
		makeRepository(folder, { "README.md": "# Hello\n" });
		const { page } = harness;
		page.setDefaultTimeout(AGENT_MS_MAX);
		await harness.open("/");
		await harness.connected();
		watch.note("`turnkeep up`, and the link opens the inbox");
		await startRun(page, folder);
		watch.note("*Start a run*: the form is filled, and the run is there");
		await page.getByRole("link", { name: /^Inbox/ }).click();
		const approve = page.getByRole("button", { name: "Approve once" });
		await approve.waitFor();
		watch.note("Claude Code starts, and asks before it writes a file (a model adds its own time)");
		await approve.click();
		await page.goto("/runs");
		await page.getByRole("link", { name: "Write hello.txt" }).click();
		await page.getByText("hello.txt says hello.").first().waitFor();
		watch.note("approved: the file is written, and the agent says so");
	} finally {
		await harness.stop();
		model.stop();
	}
	return watch.steps;
}

async function startRun(page: Page, folder: string): Promise<void> {
	await page.getByRole("link", { name: "Start a run" }).click();
	await page.getByRole("textbox", { name: "Folder" }).fill(folder);
	await page.getByRole("textbox", { name: "Goal" }).fill("Write hello.txt");
	await page.getByRole("button", { name: "Start the run" }).click();
	await page.locator("[data-agent]").first().waitFor();
}

/** Claude Code with the scripted model, a key that opens nothing, and nothing else that it would connect to. */
function agentConfig(url: string): string {
	const variables = {
		ANTHROPIC_BASE_URL: url,
		ANTHROPIC_API_KEY: "no-key",
		DISABLE_TELEMETRY: "1",
		DISABLE_AUTOUPDATER: "1",
		DISABLE_ERROR_REPORTING: "1",
		CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
	};
	const lines = Object.entries(variables).map(([name, value]) => `env.${name} = ${JSON.stringify(value)}`);
	return `[providers.claude]\ncommand = ${JSON.stringify(AGENT)}\n${lines.join("\n")}\n`;
}

function describeSteps(steps: readonly Step[]): string {
	const rows = steps.map(({ what, ms }) => `| ${what} | ${duration(ms)} |`);
	const [core, ...others] = cpus();
	const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: ROOT, encoding: "utf8" }).trim();
	const machine = `Commit ${commit}, ${others.length + 1} cores of ${core?.model.trim() ?? "?"}.`;
	return `| step | time |\n|---|---|\n${rows.join("\n")}\n\n${machine}\n`;
}

function duration(ms: number): string {
	const seconds = ms / 1000;
	if (seconds < 90) return `${seconds.toFixed(1)} s`;
	return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** A team builds a feature, and the person at its side never touches a mouse. Each stop of the focus can be seen. */

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeRepository, until } from "./agent-runs.ts";
import { BINARY, type Harness, startHarness } from "./harness.ts";

/** A page has fewer stops than this. */
const TABS_MAX = 120;
/** Agents are programs that start and work, on a busy machine too. */
const WORK_MS_MAX = 90_000;

const SCRIPT = `
[[turn]]
when = ["You lead this team", "Message from the user:"]
steps = [
    { call = "send_handoff", args = { to = "a", message = "Write a." } },
    { call = "send_handoff", args = { to = "b", message = "Write b." } },
    { say = "Both are at work." },
]

[[turn]]
when = "Write a."
steps = [{ write = "a.txt", content = "a\\n" }, { say = "My part is ready." }]

[[turn]]
when = "Write b."
steps = [{ run = "echo bad > b.txt", ask = true }, { say = "The last part is ready." }]

[[turn]]
when = "The last part is ready."
steps = [
    { call = "complete_run", args = { summary = "Both parts are ready.", ok = true, evidence = "Both say so." } },
    { say = "Done." },
]

[[turn]]
repeat = true
steps = [{ say = "Noted." }]
`;

interface RunView {
	readonly id: string;
	readonly status: string;
	readonly nodes: Readonly<Record<string, { readonly alias?: string; readonly status: string }>>;
}

const scripts = mkdtempSync(join(tmpdir(), "turnkeep-keyboard-"));
let h: Harness;
let shop: string;

beforeAll(async () => {
	const [link, script] = [join(scripts, "turnkeep-agent-script"), join(scripts, "script.toml")];
	symlinkSync(BINARY, link);
	writeFileSync(script, SCRIPT);
	const config = `[providers.claude]\ncommand = ${JSON.stringify(link)}\nargs = ["--script", ${JSON.stringify(script)}]\n[runs]\nfs_roots = [${JSON.stringify(tmpdir())}]\n`;
	h = await startHarness({ config });
	shop = join(h.workDir, "shop");
	makeRepository(shop, { "check.sh": "test -f a.txt && grep -q good b.txt\n" });
});
afterAll(async () => {
	await h?.stop();
	rmSync(scripts, { recursive: true, force: true });
});

async function theRun(): Promise<RunView> {
	const { runs } = await h.api<{ runs: RunView[] }>("/api/runs");
	const [run] = runs;
	if (run === undefined) throw new Error("there is no run");
	return run;
}

const statusOf = (run: RunView, alias: string) => Object.values(run.nodes).find((node) => node.alias === alias)?.status;

/** Presses Tab until a control has the focus. */
async function tabTo(target: Locator): Promise<void> {
	await target.waitFor();
	for (let presses = 0; presses < TABS_MAX; presses += 1) {
		if (await target.evaluate((element) => element === document.activeElement)) return;
		await h.page.keyboard.press("Tab");
		expect(await h.page.evaluate(hiddenFocus)).toBeNull();
	}
	throw new Error(`Tab does not reach ${target}`);
}

async function enter(target: Locator): Promise<void> {
	await tabTo(target);
	await h.page.keyboard.press("Enter");
}

async function type(target: Locator, text: string): Promise<void> {
	await tabTo(target);
	await h.page.keyboard.press("Control+a");
	await h.page.keyboard.type(text);
}

/** What has the focus if nobody could see it: without a ring, or out of the window. Null if all is well. */
function hiddenFocus(): string | null {
	const focused = document.activeElement;
	// After the last control, the focus leaves the page before it comes back to the first one.
	if (focused === null || focused === document.body) return null;
	const { outlineStyle, outlineWidth } = getComputedStyle(focused);
	const hasRing = outlineStyle !== "none" && Number.parseFloat(outlineWidth) > 0;
	const { top, bottom, left, right } = focused.getBoundingClientRect();
	const isInWindow = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
	return hasRing && isInWindow ? null : focused.outerHTML.slice(0, 300);
}

test("a run is started, answered, checked and applied with the keyboard alone", async () => {
	const { page } = h;
	await h.open("/");
	await h.connected();

	await page.keyboard.press("g");
	await page.keyboard.press("r");
	await page.getByText("No runs yet").waitFor();
	await enter(page.getByRole("link", { name: "Start a run" }).first());
	await type(page.getByLabel("Folder", { exact: true }), shop);
	await page.getByText("A git repository").waitFor();
	await type(page.getByRole("textbox", { name: "Goal" }), "Make the check pass");
	await tabTo(page.getByLabel("Team"));
	await page.keyboard.type("team");
	await enter(page.getByText("Modes, verification and budget"));
	await type(page.getByLabel("Verification"), "sh check.sh");
	await enter(page.getByRole("button", { name: "Start the run" }));
	await page.getByRole("heading", { name: "Make the check pass" }).waitFor();

	const isAtRest = (run: RunView) => ["lead", "a"].every((alias) => statusOf(run, alias) === "idle");
	await until(
		async () => statusOf(await theRun(), "b") === "blocked" && isAtRest(await theRun()),
		"an approval",
		WORK_MS_MAX,
	);
	await page.keyboard.press("Escape");
	await page.keyboard.press("g");
	await page.keyboard.press("i");
	const approval = page.getByRole("listitem", { name: /^approval:/ });
	await approval.getByText("echo bad > b.txt").first().waitFor();
	await page.keyboard.press("j");
	await page.keyboard.press("e");
	await type(approval.getByLabel("Arguments as JSON"), '{"command": "echo good > b.txt"}');
	await approval.getByRole("region", { name: "What you changed" }).getByText("echo good").waitFor();
	await enter(approval.getByRole("button", { name: "Approve with these arguments" }));
	await approval.waitFor({ state: "detached" });
	await until(async () => (await theRun()).status === "completed", "completion", WORK_MS_MAX);

	await page.keyboard.press("g");
	await page.keyboard.press("r");
	await page.getByRole("table").getByRole("link", { name: "Make the check pass" }).waitFor();
	await page.keyboard.press("j");
	await page.keyboard.press("Enter");
	await enter(page.getByRole("link", { name: "Changes", exact: true }));
	await page.getByText("No agent changed a file since.").waitFor();
	await enter(page.getByRole("button", { name: /^Apply 2 files to / }));
	const question = page.getByRole("alertdialog").or(page.getByRole("dialog"));
	await enter(question.getByRole("button", { name: "Apply 2 files", exact: true }));
	await page.getByText("Applied 2 files").first().waitFor();
	expect(readFileSync(join(shop, "b.txt"), "utf8")).toBe("good\n");
});

/**
 * `npm run animation`: the short film at the beginning of the README, from a real demo, into `docs/screens`.
 *
 * A run with an agent that asks for approval, the approval answered in the inbox, the diff of another agent, and why one
 * of its lines is there. `img2webp` (the Debian package webp) puts the pictures together.
 */

import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { until } from "../test/e2e/agent-runs.ts";
import { type Demo, startDemo } from "../test/e2e/demo.ts";
import { untilLoaded, WIDE } from "../test/e2e/page-checks.ts";
import { Film, THEMES } from "./film.ts";

const OUT = fileURLToPath(new URL("../../docs/screens", import.meta.url));
const BYTES_MAX = 1_500_000;
const FILM_MS_MAX = 15_000;
/** What an answer changes is shown this often. */
const LIVE_MS = 250;

export async function main(): Promise<void> {
	const folder = mkdtempSync(join(tmpdir(), "turnkeep-film-"));
	// Pictures show the path of the demo's directory, so it is a short one.
	const demo = await startDemo(WIDE, { temporary: tmpdir() });
	try {
		await leaveTour(demo);
		const film = new Film(demo.page, folder, { x: 640, y: 640 });
		await showRun(demo, film);
		await answerApproval(demo, film);
		await explainLine(demo, film);
		for (const theme of THEMES) writeFilm(film, theme);
	} finally {
		await demo.stop();
		rmSync(folder, { recursive: true, force: true });
	}
}

function writeFilm(film: Film, theme: (typeof THEMES)[number]): void {
	const path = join(OUT, `demo-${theme}.webp`);
	film.write(theme, path);
	const { size } = statSync(path);
	console.log(`${path}: ${(film.ms / 1000).toFixed(1)} s, ${Math.round(size / 1000)} KB`);
	if (size > BYTES_MAX) throw new Error(`the film must not exceed ${BYTES_MAX} bytes`);
	if (film.ms > FILM_MS_MAX) throw new Error(`the film must not exceed ${FILM_MS_MAX} ms`);
}

/** The tour would cover what is filmed. The page that is opened next does not have its last words any more. */
async function leaveTour({ page, link, things, get }: Demo): Promise<void> {
	const waits = async () => {
		const { items } = await get<{ items: readonly { kind: string; nodeId?: string | null }[] }>("/api/attention");
		return items.some(({ kind, nodeId }) => kind === "approval" && nodeId === things.approval_node);
	};
	await until(waits, "an approval", 60_000);
	await page.goto(link);
	await page.getByRole("button", { name: "Leave the tour" }).click();
	await page.getByText("You left the tour").first().waitFor();
}

/** The graph of the team, and the agent that asks. */
async function showRun({ page, things }: Demo, film: Film): Promise<void> {
	await openScreen(page, `/runs/${things.run}`);
	const agent = page.locator(`[data-agent="${things.approval_node}"]`);
	await agent.waitFor();
	await film.hold(1_500);
	await film.press(agent, 600);
	await page.getByRole("link", { name: "Answer in the inbox" }).first().waitFor();
	await film.hold(1_000);
	await film.press(page.getByRole("link", { name: "Answer in the inbox" }).first(), 500);
}

/** The person approves, and the item leaves the inbox. */
async function answerApproval({ page, things }: Demo, film: Film): Promise<void> {
	const item = page
		.getByRole("listitem", { name: /^approval:/ })
		.filter({ has: page.locator(`[data-ref="node:${things.approval_node}"]`) });
	await item.waitFor();
	await film.hold(900);
	await film.press(item.getByRole("button", { name: "Approve once" }), 500);
	for (let live = 0; live < 4; live += 1) await film.hold(LIVE_MS);
	await item.waitFor({ state: "detached" });
	await film.hold(700);
}

/** The diff of an agent, and the chain from one of its lines to a person. */
async function explainLine({ page, things, get }: Demo, film: Film): Promise<void> {
	const { file, line, run } = things;
	const node = await authorOf(get, run, file);
	await openScreen(page, `/runs/${run}/agents/${node}/diffs?file=${encodeURIComponent(file)}&line=${line}`);
	await film.hold(1_000);
	const number = page.getByRole("button", { name: `Why is line ${line} of ${file} here?` });
	await film.press(number, 600);
	const end = page.getByText("The chain ends at a person.");
	await end.waitFor();
	// The panel has moved the line.
	await film.pointAt(number, 200);
	await film.hold(2_000);
	await end.scrollIntoViewIfNeeded();
	await film.hold(2_500);
}

interface RunAnswer {
	readonly run: {
		readonly artifacts: Readonly<
			Record<
				string,
				{ readonly nodeId?: string; readonly createdAt: string; readonly metadata?: { filesChanged: string[] } }
			>
		>;
	};
}

/** The agent that changed a file last. */
async function authorOf(get: Demo["get"], run: string, file: string): Promise<string> {
	const { artifacts } = (await get<RunAnswer>(`/api/runs/${run}`)).run;
	const diffs = Object.values(artifacts).filter(({ metadata }) => metadata?.filesChanged.includes(file));
	const last = diffs.toSorted((one, other) => Date.parse(one.createdAt) - Date.parse(other.createdAt)).at(-1);
	if (last?.nodeId === undefined) throw new Error(`no agent changed ${file}`);
	return last.nodeId;
}

async function openScreen(page: Page, path: string): Promise<void> {
	await page.goto(path);
	await page.locator('[data-connection="connected"]').waitFor();
	await untilLoaded(page);
}

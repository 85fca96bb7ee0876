/**
 * `npm run screens`: pictures of every screen, into `docs/screens`.
 *
 * A real server is photographed twice: empty, and with something of every kind. Each screen is taken in a wide window
 * and in one of 390 pixels, in the light and the dark theme. `pngquant` (a Debian package) reduces the colours: with
 * all of them, the folder would be much larger. The pictures of an earlier run are removed.
 */

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { scriptedConfig } from "../test/e2e/agent-runs.ts";
import { EMPTY_SCREENS, makeEverything, type Screens } from "../test/e2e/everything.ts";
import { BINARY, type Harness, openWindow, startHarness } from "../test/e2e/harness.ts";
import { PHONE, untilLoaded, WIDE } from "../test/e2e/page-checks.ts";
import { folderBytes, reduceColours } from "./pictures.ts";
import { describeScreens, type ScreenGroup } from "./screens-page.ts";

const OUT = fileURLToPath(new URL("../../docs/screens", import.meta.url));
const FOLDER_BYTES_MAX = 7_500_000;
/** Pictures show these paths, so they are the same on every machine. */
const ROOT = "/tmp/turnkeep";
const SCRIPTS = "/tmp/turnkeep-agents";
/** Graphs, plots and terminals draw themselves after their data has come. */
const DRAWING_MS = 400;
/** The plots of the server's health show what happened while the page was open. */
const PLOTTED_MS = 20_000;
const PLOTTED_STEP_MS = 100;
const PLOTTED = "system health";
/** It is for who is not signed in; to others it opens the inbox. */
const SIGN_IN = "sign-in";

const THEMES = ["light", "dark"] as const;
const WINDOWS = { wide: WIDE, phone: PHONE } as const;

export async function main(): Promise<void> {
	for (const group of ["empty", "full"]) {
		rmSync(join(OUT, group), { recursive: true, force: true });
		mkdirSync(join(OUT, group), { recursive: true });
	}
	const groups: ScreenGroup[] = [
		{ folder: "empty", screens: await takeEmpty() },
		{ folder: "full", screens: await takeFull() },
	];
	for (const { folder } of groups) reduceColours(join(OUT, folder));
	writeFileSync(join(OUT, "README.md"), describeScreens(groups));
	const bytes = groups.reduce((sum, { folder }) => sum + folderBytes(join(OUT, folder)), 0);
	console.log(`${OUT}: ${(bytes / 1e6).toFixed(1)} MB`);
	if (bytes > FOLDER_BYTES_MAX) throw new Error(`the pictures must not exceed ${FOLDER_BYTES_MAX} bytes`);
}

async function takeEmpty(): Promise<Screens> {
	const harness = await startHarness({ root: ROOT });
	try {
		await takeScreens(harness, "empty", EMPTY_SCREENS);
		return EMPTY_SCREENS;
	} finally {
		await harness.stop();
	}
}

async function takeFull(): Promise<Screens> {
	mkdirSync(SCRIPTS);
	const roots = `[runs]\nfs_roots = [${JSON.stringify(ROOT)}]\n`;
	const harness = await startHarness({ root: ROOT, config: scriptedConfig(SCRIPTS, BINARY) + roots });
	try {
		const { screens: all, end } = await makeEverything(harness);
		// It looks as on a new server.
		const { [SIGN_IN]: _signIn, ...screens } = all;
		await takeScreens(harness, "full", screens);
		const opened = await takeOpened(harness, screens);
		end();
		return { ...screens, ...opened };
	} finally {
		await harness.stop();
		rmSync(SCRIPTS, { recursive: true, force: true });
	}
}

async function takeScreens(harness: Harness, folder: string, screens: Screens): Promise<void> {
	for (const [name, path] of Object.entries(screens)) {
		console.log(`${folder}: ${name}`);
		if (name === SIGN_IN) {
			await takeSignIn(harness, folder, path);
			continue;
		}
		await openScreen(harness, path);
		if (name === PLOTTED && folder === "full") await appendForAWhile(harness);
		await takePictures(harness.page, folder, name);
	}
}

/** The page for signing in, in a window of its own that has no cookie. */
async function takeSignIn({ context, uiUrl }: Harness, folder: string, path: string): Promise<void> {
	const browser = context.browser();
	if (browser === null) throw new Error("the browser has gone");
	const signedOut = await openWindow(browser, uiUrl, { viewport: WIDE });
	await signedOut.page.goto(path);
	await signedOut.page.getByRole("heading", { level: 1 }).waitFor();
	await takePictures(signedOut.page, folder, SIGN_IN);
	await signedOut.context.close();
}

/** Gives the plots something to show. */
async function appendForAWhile({ api }: Harness): Promise<void> {
	const { context_id } = await api<{ context_id: string }>("/v1/contexts", { body: { labels: { agent: "planner" } } });
	const note = { type_id: "turnkeep.Note", type_version: 1, data: { text: "Noted." } };
	const began = Date.now();
	for (let sent = 0; Date.now() - began < PLOTTED_MS; sent += 1) {
		const atOnce = 1 + Math.round(4 * (1 + Math.sin(sent / 12)));
		const append = () => api(`/v1/contexts/${context_id}/append`, { body: note });
		await Promise.all(Array.from({ length: atOnce }, append));
		await new Promise((resolve) => setTimeout(resolve, PLOTTED_STEP_MS));
	}
}

/** What is no screen of its own, but opens over one. */
async function takeOpened(harness: Harness, screens: Screens): Promise<Screens> {
	const { page } = harness;
	const over = async (name: string, under: string, open: () => Promise<void>) => {
		const path = screens[under] ?? "/";
		await openScreen(harness, path);
		await open();
		await takePictures(page, "full", name);
		return { [name]: path };
	};
	return {
		...(await over("search", "runs", () => page.keyboard.press("Control+k"))),
		...(await over("keys", "run", () => page.keyboard.press("?"))),
		...(await over("why panel", "agent diffs", async () => {
			await page.getByRole("button", { name: "Why is line 2 of src/printer.py here?" }).click();
			await page.getByRole("region", { name: "Why is this here?" }).getByRole("listitem").first().waitFor();
		})),
	};
}

async function openScreen(harness: Harness, path: string): Promise<void> {
	await harness.page.setViewportSize(WIDE);
	await harness.page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
	await harness.open(path);
	await harness.connected();
}

async function takePictures(page: Page, folder: string, name: string): Promise<void> {
	for (const [window, size] of Object.entries(WINDOWS)) {
		await page.setViewportSize(size);
		await untilLoaded(page);
		await page.waitForTimeout(DRAWING_MS);
		for (const theme of THEMES) {
			await page.emulateMedia({ colorScheme: theme });
			await page.screenshot({ path: join(OUT, folder, pictureName(name, window, theme)), animations: "disabled" });
		}
	}
}

const pictureName = (screen: string, window: string, theme: string) =>
	`${screen.replaceAll(" ", "-")}-${window}-${theme}.png`;

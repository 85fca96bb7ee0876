/** Windows of the browser in which the probe is at work. */

import type { Browser, Page } from "playwright-core";
import { type Harness, openWindow } from "../../test/e2e/harness.ts";
import { installProbe, type Motion, type Response, type Useful } from "./probe.ts";

/** A page that shows as much as a person usually sees. */
const VIEWPORT = { width: 1440, height: 900 };
/** A measurement may find a page much slower than its budget. */
const PAGE_MS_MAX = 120_000;
/** The shortest task that the browser reports as long. */
export const LONG_TASK_MS = 50;
/** A hand moves the mouse about so often. */
const FRAME_MS = 1000 / 60;

/** A window without a cache, signed in, with nothing open. */
export async function newWindow({ uiUrl, token }: Harness, browser: Browser): Promise<Page> {
	const { context, page } = await openWindow(browser, uiUrl, { viewport: VIEWPORT });
	page.setDefaultTimeout(PAGE_MS_MAX);
	await context.request.get(`/?token=${token}`);
	await page.addInitScript(installProbe);
	return page;
}

/** Opens a path, and resolves to the milliseconds until the screen is of use. */
export async function openPath(page: Page, path: string, useful: Useful): Promise<number> {
	await page.goto(path, { waitUntil: "commit" });
	return page.evaluate((each) => window.probe.untilUseful(each), useful);
}

/** Records frames and long tasks while something is done. */
export async function recordMotion(page: Page, act: () => Promise<void>): Promise<Motion> {
	await page.evaluate(() => window.probe.beginMotion());
	await act();
	return page.evaluate(() => window.probe.endMotion());
}

/** Does something about sixty times a second, as long as it is told. */
export async function everyFrame(ms: number, act: (passed: number) => Promise<void>): Promise<void> {
	const began = performance.now();
	for (let frame = 1; ; frame += 1) {
		const passed = performance.now() - began;
		if (passed >= ms) return;
		await act(passed);
		await sleep(began + frame * FRAME_MS - performance.now());
	}
}

/** Presses a key, and resolves to the milliseconds until its response is on screen. */
export async function pressKey(page: Page, key: string, response: Response): Promise<number> {
	await page.evaluate((each) => window.probe.expectResponse(each), response);
	await page.keyboard.press(key);
	return page.evaluate(() => window.probe.response ?? Promise.reject(new Error("no key is expected")));
}

export function framesPerSecond({ frames }: Motion): number {
	const [first, last] = [frames[0], frames.at(-1)];
	if (first === undefined || last === undefined || first === last) return 0;
	return ((frames.length - 1) * 1000) / (last - first);
}

/** The longest task; shorter ones than the browser reports count as none. */
export function longestTask(...motions: readonly Motion[]): number {
	return Math.max(0, ...motions.flatMap(({ longTasks }) => longTasks));
}

export function sleep(ms: number): Promise<void> {
	return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}

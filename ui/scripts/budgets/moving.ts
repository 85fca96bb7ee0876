/** How smoothly a large run and a long history move: panning, scrolling, and keys. */

import type { Browser, Page } from "playwright-core";
import type { Harness } from "../../test/e2e/harness.ts";
import { atMost, milliseconds, percentile, type Row } from "./figures.ts";
import type { Screen } from "./opening.ts";
import type { Motion, Response } from "./probe.ts";
import { everyFrame, framesPerSecond, longestTask, newWindow, openPath, pressKey, recordMotion } from "./windows.ts";

export const TASK_MS_MAX = 100;
const KEY_MS_MAX = 100;
const FRAMES_PER_SECOND_MIN = 60;
/** One frame a second may be missed by the clock. */
const FRAMES_TOLERATED = 1;
const PAN_PIXELS = 300;
const PAN_MS = 1_500;
const WHEEL_PIXELS = 120;
const ZOOM_STEPS = 5;

/** Panning the graph of a large run: all of it from afar, and a part from near, where cards come and go. */
export async function measurePanning(harness: Harness, browser: Browser, run: Screen, ms: number): Promise<Row[]> {
	const page = await newWindow(harness, browser);
	await openPath(page, run.path, run.useful);
	const far = await recordMotion(page, () => pan(page, ms));
	for (let step = 0; step < ZOOM_STEPS; step += 1) await page.getByRole("button", { name: "Zoom in" }).click();
	const near = await recordMotion(page, () => pan(page, ms));
	await page.context().close();
	return [
		atMost("longest task while panning", longestTask(far, near), TASK_MS_MAX, milliseconds),
		...[fpsRow("from afar", far), fpsRow("from near", near)],
	];
}

function fpsRow(where: string, motion: Motion): Row {
	const fps = framesPerSecond(motion);
	return {
		what: `frames while panning ${where}`,
		measured: `${fps.toFixed(1)}/s`,
		budget: `${FRAMES_PER_SECOND_MIN}/s`,
		isReached: fps >= FRAMES_PER_SECOND_MIN - FRAMES_TOLERATED,
	};
}

/** Drags the canvas in circles. */
async function pan(page: Page, ms: number): Promise<void> {
	const { x, y } = await page.evaluate(freePointOfGraph);
	await page.mouse.move(x, y);
	await page.mouse.down();
	await everyFrame(ms, async (passed) => {
		const angle = (passed / PAN_MS) * 2 * Math.PI;
		await page.mouse.move(x + PAN_PIXELS * Math.sin(angle), y + (PAN_PIXELS / 2) * (1 - Math.cos(angle)));
	});
	await page.mouse.up();
}

/** A point of the canvas on which nothing lies; runs in the page. */
function freePointOfGraph(): { readonly x: number; readonly y: number } {
	const { left, top, width, height } = document.querySelector(".react-flow")?.getBoundingClientRect() ?? new DOMRect();
	const STEPS = 60;
	for (let at = 0; at < STEPS * STEPS; at += 1) {
		const x = left + (width * ((at % STEPS) + 0.5)) / STEPS;
		const y = top + (height * (Math.floor(at / STEPS) + 0.5)) / STEPS;
		if (document.elementFromPoint(x, y)?.classList.contains("react-flow__pane")) return { x, y };
	}
	throw new Error("the graph covers its canvas");
}

/** A list that is scrolled, and whether towards its beginning. */
export interface LongList extends Screen {
	readonly list: string;
	readonly isReadUpwards: boolean;
}

/** Scrolling long lists from end to end, as fast as a wheel does. */
export async function measureScrolling(
	harness: Harness,
	browser: Browser,
	lists: readonly LongList[],
	ms: number,
): Promise<Row[]> {
	const rows: Row[] = [];
	for (const { name, path, useful, list, isReadUpwards } of lists) {
		const page = await newWindow(harness, browser);
		await openPath(page, path, useful);
		await page.locator(list).hover();
		const motion = await recordMotion(page, () =>
			everyFrame(ms, () => page.mouse.wheel(0, isReadUpwards ? -WHEEL_PIXELS : WHEEL_PIXELS)),
		);
		await page.context().close();
		const row = atMost(`longest task while scrolling ${name}`, longestTask(motion), TASK_MS_MAX, milliseconds);
		rows.push({ ...row, measured: `${row.measured} (${framesPerSecond(motion).toFixed(1)} frames/s)` });
	}
	return rows;
}

/** A key that is pressed, and what it brings about. */
interface Stroke {
	readonly key: string;
	readonly response: Response;
}

const DIALOG = '[role="dialog"]';
const FIELD = `${DIALOG} [role="combobox"]`;
const focus: Response = { kind: "focus" };
const closes: Stroke = { key: "Escape", response: { kind: "vanishes", selector: DIALOG } };

const SEARCH: readonly Stroke[] = [
	{ key: "Control+k", response: { kind: "appears", selector: FIELD } },
	..."agent".split("").map((key, at): Stroke => ({ key, response: { kind: "text", text: "agent".slice(0, at + 1) } })),
	closes,
];
const HELP: readonly Stroke[] = [{ key: "?", response: { kind: "appears", selector: DIALOG } }, closes];

/** Keys of every kind on a screen: moving the focus, the search with its text field, the list of keys. */
export async function measureKeys(page: Page, repetitions: number): Promise<number[]> {
	const times: number[] = [];
	const strokes = ["j", "j", "j", "k", "j"].map((key): Stroke => ({ key, response: focus }));
	for (let time = 0; time < repetitions; time += 1) {
		for (const { key, response } of [...strokes, ...SEARCH, ...HELP]) times.push(await pressKey(page, key, response));
	}
	return times;
}

export function keyRow(what: string, times: readonly number[]): Row {
	return atMost(`key to response, p95, ${what}`, percentile(times, 95), KEY_MS_MAX, milliseconds);
}

/** Keys on a large run and a long history. */
export async function measureKeysAtRest(
	harness: Harness,
	browser: Browser,
	screens: readonly Screen[],
	repetitions: number,
): Promise<Row[]> {
	const rows: Row[] = [];
	for (const { name, path, useful } of screens) {
		const page = await newWindow(harness, browser);
		await openPath(page, path, useful);
		rows.push(keyRow(`on ${name}`, await measureKeys(page, repetitions)));
		await page.context().close();
	}
	return rows;
}

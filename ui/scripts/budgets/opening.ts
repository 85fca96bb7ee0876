/** What a browser without a cache fetches first, and how soon a screen is of use. */

import type { Browser } from "playwright-core";
import type { Harness } from "../../test/e2e/harness.ts";
import { atMost, kilobytes, percentile, type Row, seconds, shown } from "./figures.ts";
import type { Useful } from "./probe.ts";
import { newWindow, openPath, sleep } from "./windows.ts";

/** A screen, its path, and when it is of use. */
export interface Screen {
	readonly name: string;
	readonly path: string;
	readonly useful: Useful;
}

const FIRST_LOAD_BYTES_MAX = 300_000;
const FIRST_SCREEN_MS_MAX = 1_000;
const OPEN_MS_MAX = 1_500;
/** Parts that a screen loads when it is there. */
const HEAVY = /\/(RunGraph|TerminalView|PlotCanvas)-/;
/** What the first load brings has begun to come by then. */
const SETTLE_MS = 1_000;
/** One opening in twenty may be slower than the budget. */
const PERCENT = 95;

/** The largest first load of these screens. */
export async function measureFirstLoad(harness: Harness, browser: Browser, screens: readonly Screen[]): Promise<Row[]> {
	const loads: { readonly name: string; readonly gzip: number; readonly brotli: number }[] = [];
	for (const { name, path, useful } of screens) {
		const gzip = await fetchedBytes(harness, browser, path, useful, "gzip");
		loads.push({ name, gzip, brotli: await fetchedBytes(harness, browser, path, useful, "br") });
	}
	const largest = loads.reduce((one, other) => (other.gzip > one.gzip ? other : one));
	const first = loads[0] ?? largest;
	return [
		atMost(`first load, gzip, of the largest screen (${largest.name})`, largest.gzip, FIRST_LOAD_BYTES_MAX, kilobytes),
		shown(`first load, gzip, of the ${first.name}`, kilobytes(first.gzip)),
		shown(`first load, brotli, which browsers get, of the ${first.name}`, kilobytes(first.brotli)),
	];
}

/** The bytes of the files that a page fetches until it is of use, headers included, without the heavy parts. */
async function fetchedBytes(
	harness: Harness,
	browser: Browser,
	path: string,
	useful: Useful,
	encoding: "gzip" | "br",
): Promise<number> {
	const page = await newWindow(harness, browser);
	await page.setExtraHTTPHeaders({ "accept-encoding": encoding });
	const cdp = await page.context().newCDPSession(page);
	await cdp.send("Network.enable");
	const files = new Set<string>();
	let bytes = 0;
	cdp.on("Network.responseReceived", ({ requestId, response, type }) => {
		const sent = response.headers["content-encoding"] ?? encoding;
		if (sent !== encoding) throw new Error(`${response.url} came as ${sent}`);
		const isFile = ["Document", "Script", "Stylesheet", "Font", "Image"].includes(type);
		if (isFile && !HEAVY.test(response.url)) files.add(requestId);
	});
	cdp.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
		if (files.has(requestId)) bytes += encodedDataLength;
	});
	await openPath(page, path, useful);
	await sleep(SETTLE_MS);
	await page.context().close();
	return bytes;
}

/** How soon the first screen and large ones are of use in a window without a cache. */
export async function measureOpening(
	harness: Harness,
	browser: Browser,
	screens: { readonly first: Screen; readonly large: readonly Screen[] },
	repetitions: number,
): Promise<Row[]> {
	const row = async ({ name, path, useful }: Screen, budget: number) => {
		const times: number[] = [];
		for (let time = 0; time < repetitions; time += 1) {
			const page = await newWindow(harness, browser);
			times.push(await openPath(page, path, useful));
			await page.context().close();
		}
		const median = `median ${seconds(percentile(times, 50))}`;
		const found = atMost(`open ${name}, p95`, percentile(times, PERCENT), budget, seconds);
		return { ...found, measured: `${found.measured} (${median})` };
	};
	const rows = [await row(screens.first, FIRST_SCREEN_MS_MAX)];
	for (const screen of screens.large) rows.push(await row(screen, OPEN_MS_MAX));
	return rows;
}

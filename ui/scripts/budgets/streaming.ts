/** What agents that stream cost a window: long tasks, keys, how late words are shown, and memory. */

import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { type Harness, launchBrowser } from "../../test/e2e/harness.ts";
import { keepStreaming, type Run } from "./data.ts";
import { atMost, megabytes, milliseconds, type Point, percentile, type Row, shown, slope } from "./figures.ts";
import { keyRow, measureKeys, TASK_MS_MAX } from "./moving.ts";
import type { Screen } from "./opening.ts";
import { framesPerSecond, longestTask, newWindow, openPath, recordMotion, sleep } from "./windows.ts";

const PIXELS_MS_MAX = 150;
const MEMORY_BYTES_MAX = 300e6;
/** A tab that grows by less in an hour counts as flat: collections do not come at the same moment of each minute. */
const GROWTH_BYTES_MAX = 20e6;
/** Agents that came to rest begin again within this time. */
const CHECK_MS = 500;
const SAMPLE_MS = 5_000;
/** Not counted: the agents begin, and the page fills. */
const WARM_UP_MS = 10_000;

/** A screen that shows the words of agents, and where. */
export interface StreamScreen extends Screen {
	/** Where the words are; `NODE` stands for an agent's id. */
	readonly words: string;
	readonly nodes: readonly string[];
}

/** Long tasks, keys and the delay of words while agents stream. */
export async function measureStreaming(
	harness: Harness,
	browser: Browser,
	run: Run,
	screens: readonly StreamScreen[],
	ms: number,
): Promise<Row[]> {
	const rows: Row[] = [];
	const stream = new Stream(harness, run);
	try {
		for (const screen of screens) {
			const page = await newWindow(harness, browser);
			await openPath(page, screen.path, screen.useful);
			await sleep(Math.min(WARM_UP_MS, ms));
			rows.push(...(await watchWords(page, screen, ms)));
			rows.push(keyRow(`on ${screen.name} while agents stream`, await measureKeys(page, 1)));
			await page.context().close();
		}
	} finally {
		await stream.end();
	}
	return rows;
}

async function watchWords(page: Page, { name, nodes, words }: StreamScreen, ms: number): Promise<Row[]> {
	await page.evaluate((each) => window.probe.followWords(each), { nodes, selector: words });
	const motion = await recordMotion(page, () => sleep(ms));
	const latencies = await page.evaluate(() => window.probe.latencies);
	const task = atMost(`longest task while streaming, ${name}`, longestTask(motion), TASK_MS_MAX, milliseconds);
	const late = atMost(`event to pixels, p95, ${name}`, percentile(latencies, 95), PIXELS_MS_MAX, milliseconds);
	return [
		{ ...task, measured: `${task.measured} (${framesPerSecond(motion).toFixed(1)} frames/s)` },
		{ ...late, measured: `${late.measured} (median ${milliseconds(percentile(latencies, 50))})` },
	];
}

/** The memory of a tab of its own while agents stream for a long time. */
export async function measureMemory(harness: Harness, run: Run, screen: Screen, ms: number): Promise<Row[]> {
	const browser = await launchBrowser();
	const stream = new Stream(harness, run);
	try {
		const page = await newWindow(harness, browser);
		await openPath(page, screen.path, screen.useful);
		await sleep(Math.min(WARM_UP_MS, ms));
		const samples = await sampleMemory(browser, page, ms);
		return memoryRows(samples, screen.name, ms);
	} finally {
		await stream.end();
		await browser.close();
	}
}

interface Sample {
	/** In hours, since the first one. */
	readonly at: number;
	/** What JavaScript uses, after a collection. */
	readonly heap: number;
	/** What the tab's process has for itself. */
	readonly process: number;
}

const HOUR_MS = 3_600_000;

async function sampleMemory(browser: Browser, page: Page, ms: number): Promise<Sample[]> {
	const cdp = await page.context().newCDPSession(page);
	const pid = await processOfTab(browser);
	const samples: Sample[] = [];
	const began = performance.now();
	do {
		// The process is read first: a tab that is watched must not look smaller than one that is not.
		const own = privateBytes(pid);
		await cdp.send("HeapProfiler.collectGarbage");
		const { usedSize } = await cdp.send("Runtime.getHeapUsage");
		samples.push({ at: (performance.now() - began) / HOUR_MS, heap: usedSize, process: own });
		await sleep(SAMPLE_MS);
	} while (performance.now() - began < ms);
	return samples;
}

function memoryRows(samples: readonly Sample[], name: string, ms: number): Row[] {
	// At first the page still loads parts of itself and fills its caches.
	const settled = samples.slice(Math.floor(samples.length / 4));
	const heapGrowth = slope(settled.map(({ at, heap }): Point => ({ x: at, y: heap })));
	const largest = Math.max(...samples.map((sample) => sample.process));
	const afterHour = largest + Math.max(0, heapGrowth) * (1 - ms / HOUR_MS);
	const minutes = `${(ms / 60_000).toFixed(0)} min`;
	const words = (bytes: number) => `${megabytes(bytes)}/h`;
	const heaps = samples.map(({ heap }) => heap);
	return [
		atMost(`memory of the tab, ${name}, largest in ${minutes}`, largest, MEMORY_BYTES_MAX, megabytes),
		atMost(`growth of its heap, ${name}`, heapGrowth, GROWTH_BYTES_MAX, words),
		atMost(`memory after an hour at that growth, ${name}`, afterHour, MEMORY_BYTES_MAX, megabytes),
		shown(
			`its heap after a collection, ${name}`,
			`${megabytes(Math.min(...heaps))} to ${megabytes(Math.max(...heaps))}`,
		),
	];
}

/** The process of a browser's only tab. Browsers keep a spare one, which has done less. */
async function processOfTab(browser: Browser): Promise<number> {
	const cdp = await browser.newBrowserCDPSession();
	const { processInfo } = await cdp.send("SystemInfo.getProcessInfo");
	const tabs = processInfo.filter(({ type }) => type === "renderer");
	const busiest = tabs.reduce((one, other) => (other.cpuTime > one.cpuTime ? other : one));
	return busiest.id;
}

/** Memory of a process that is not of files, as Linux counts it. */
function privateBytes(pid: number): number {
	const found = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
	if (found === undefined) throw new Error(`process ${pid} has no memory`);
	return Number(found) * 1024;
}

/** Agents that stream, one turn after another, until it is ended. */
class Stream {
	#isEnded = false;
	readonly #done: Promise<void>;

	constructor(
		private readonly harness: Harness,
		private readonly run: Run,
	) {
		this.#done = this.#keepGoing();
		// It is awaited at the end; until then its failure must not end the program.
		this.#done.catch(() => undefined);
	}

	async end(): Promise<void> {
		this.#isEnded = true;
		await this.#done;
		const { api } = this.harness;
		for (const node of this.run.nodes) {
			await api(`/api/runs/${this.run.id}/nodes/${node}/interrupt`, { method: "POST", body: {} });
		}
	}

	async #keepGoing(): Promise<void> {
		while (!this.#isEnded) {
			await keepStreaming(this.harness, this.run);
			await sleep(CHECK_MS);
		}
	}
}

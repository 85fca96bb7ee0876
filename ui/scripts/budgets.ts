/**
 * `npm run budgets`: measures what the web UI must keep to, in a real browser against a real server.
 *
 *     npm run budgets -- --write ../docs/performance.md
 *
 * `--minutes N` says how long agents stream while the memory of a tab is measured (5), `--quick` does everything once and
 * tiny, to see that it works. The server is `TURNKEEP_BIN`; without it the debug build is measured, which is slower.
 */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, release, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Browser } from "playwright-core";
import { BINARY, type Harness, launchBrowser, startHarness } from "../test/e2e/harness.ts";
import {
	budgetConfig,
	makeLargeRun,
	makeLongHistory,
	makeRun,
	makeWaitingRun,
	type Run,
	type Sizes,
} from "./budgets/data.ts";
import { describeRows, type Row } from "./budgets/figures.ts";
import { type LongList, measureKeysAtRest, measurePanning, measureScrolling } from "./budgets/moving.ts";
import { measureFirstLoad, measureOpening, type Screen } from "./budgets/opening.ts";
import { measureMemory, measureStreaming, type StreamScreen } from "./budgets/streaming.ts";
import { writeSection } from "./section.ts";

interface Effort {
	readonly sizes: Sizes;
	/** Openings of each screen. */
	readonly openings: number;
	/** How long a movement is recorded. */
	readonly motionMs: number;
	readonly keyRounds: number;
	readonly streamMs: number;
	readonly memoryMs: number;
}

const STREAM_SECONDS = 30;

function readEffort(minutes: number, isQuick: boolean): Effort {
	if (isQuick) {
		const sizes = { nodes: 12, edges: 20, events: 1_500, turns: 1_000, streams: 3, words: 250 };
		return { sizes, openings: 2, motionMs: 1_500, keyRounds: 1, streamMs: 4_000, memoryMs: 15_000 };
	}
	const sizes = { nodes: 100, edges: 200, events: 50_000, turns: 10_000, streams: 20, words: STREAM_SECONDS * 50 };
	return { sizes, openings: 20, motionMs: 8_000, keyRounds: 4, streamMs: 30_000, memoryMs: minutes * 60_000 };
}

export async function main(args: string[]): Promise<void> {
	const { values } = parseArgs({
		args,
		options: { minutes: { type: "string" }, quick: { type: "boolean" }, write: { type: "string" } },
	});
	const minutes = Number(values.minutes ?? 5);
	if (!(minutes > 0 && minutes <= 120)) throw new Error("--minutes must be a number from 1 to 120");
	const effort = readEffort(minutes, values.quick ?? false);
	const scripts = mkdtempSync(join(tmpdir(), "turnkeep-budgets-"));
	const load = loadavg()[0] ?? 0;
	try {
		const harness = await startHarness({ config: budgetConfig(scripts, BINARY, effort.sizes) });
		try {
			const rows = await measureAll(harness, effort);
			const text = `${describeRows(rows)}\n${describeMachine(harness, effort, load)}\n`;
			console.log(text);
			if (values.write !== undefined) writeSection(values.write, "web ui", text);
		} finally {
			await harness.stop();
		}
	} finally {
		rmSync(scripts, { recursive: true, force: true });
	}
}

async function measureAll(harness: Harness, effort: Effort): Promise<Row[]> {
	const { sizes } = effort;
	const browser = await launchBrowser();
	const step = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
		console.error(`${new Date().toISOString().slice(11, 19)} ${what}`);
		return work();
	};
	try {
		await step("an approval that waits", () => makeWaitingRun(harness));
		const history = await step(`a history of ${sizes.turns} turns`, () => makeLongHistory(harness, sizes.turns));
		const large = await step(`a run of ${sizes.events} events`, () => makeLargeRun(harness, sizes));
		const stream = await makeRun(harness, "Stream", sizes.streams);
		const { inbox, run, agent, dag, others } = screensOf(large, sizes, history);
		const opened = { first: inbox, large: [run, { ...agent, name: "an agent’s timeline in it" }, dag] };
		return [
			...(await step("first load", () => measureFirstLoad(harness, browser, [inbox, run, agent, dag, ...others]))),
			...(await step("opening", () => measureOpening(harness, browser, opened, effort.openings))),
			...(await step("panning", () => measurePanning(harness, browser, run, effort.motionMs))),
			...(await step("scrolling", () =>
				measureScrolling(harness, browser, listsOf(agent, dag, large), effort.motionMs),
			)),
			...(await step("keys", () => measureKeysAtRest(harness, browser, [run, dag], effort.keyRounds))),
			...(await step("streaming", () => measureAllStreams(harness, browser, stream, effort))),
		];
	} finally {
		await browser.close();
	}
}

function screensOf(large: Run, sizes: Sizes, history: string) {
	const screen = (name: string, path: string, selector: string, text = "", count = 1): Screen => ({
		name,
		path,
		useful: { selector, text, count },
	});
	const first = large.nodes[0] ?? "";
	return {
		inbox: screen("inbox", "/", 'li[aria-label^="approval"]'),
		run: screen(
			`a run of ${sizes.nodes} agents and ${sizes.events} events`,
			`/runs/${large.id}`,
			"[data-agent]",
			"Agent ",
			sizes.nodes,
		),
		agent: screen(
			"an agent’s timeline",
			`/runs/${large.id}/agents/${first}/timeline`,
			"[data-item]",
			"go on with the next",
		),
		dag: screen(`a history of ${sizes.turns} turns`, `/history/${history}`, '[data-ref^="turn:"]', "Turn number", 10),
		others: [
			screen("runs", "/runs", "tbody tr"),
			screen("an agent’s diffs", `/runs/${large.id}/agents/${first}/diffs`, "h1"),
			screen("ledger", "/ledgers/default", "h1"),
			screen("session list", "/sessions", "h1"),
			screen("health", "/system/health", "h1"),
			screen("types", "/system/types", "tbody tr"),
		],
	};
}

function listsOf(agent: Screen, dag: Screen, { id }: Run): readonly LongList[] {
	const replay: Screen = {
		name: "the replay of its events",
		path: `/runs/${id}/replay`,
		useful: { selector: 'ul[aria-label^="Events"] li', text: "", count: 10 },
	};
	return [
		{ ...dag, list: 'ul[aria-label^="Turns"]', isReadUpwards: false },
		{ ...agent, list: 'ul[aria-label^="Timeline"]', isReadUpwards: true },
		{ ...replay, list: 'ul[aria-label^="Events"]', isReadUpwards: true },
	];
}

async function measureAllStreams(harness: Harness, browser: Browser, run: Run, effort: Effort): Promise<Row[]> {
	const first = run.nodes[0] ?? "";
	const graph: StreamScreen = {
		name: `the graph of ${run.nodes.length} agents`,
		path: `/runs/${run.id}`,
		useful: { selector: "[data-agent]", text: "Agent ", count: run.nodes.length },
		words: '[data-agent="NODE"]',
		nodes: run.nodes,
	};
	const timeline: StreamScreen = {
		name: "the timeline of one of them",
		path: `/runs/${run.id}/agents/${first}/timeline`,
		useful: { selector: "h1", text: "Agent 1", count: 1 },
		words: 'ul[aria-label^="Timeline"] > li:last-of-type',
		nodes: [first],
	};
	return [
		...(await measureStreaming(harness, browser, run, [graph, timeline], effort.streamMs)),
		...(await measureMemory(harness, run, graph, effort.memoryMs)),
	];
}

function describeMachine({ context }: Harness, effort: Effort, load: number): string {
	const [core, ...others] = cpus();
	const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
	const build = BINARY.includes("/release/") ? "release" : "debug";
	const browser = `Chromium ${context.browser()?.version() ?? ""}`;
	const machine = `${others.length + 1} cores of ${core?.model.trim() ?? "?"}, Linux ${release()}`;
	const minutes = effort.memoryMs / 60_000;
	return `Commit ${commit}, ${build} build, ${browser} without a display, ${machine}. The load average was ${load.toFixed(1)} at the beginning. The agents streamed for ${minutes} min while the memory was measured.`;
}

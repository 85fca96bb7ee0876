/**
 * A demo, `turnkeep up --demo`, and Chromium at the link that it prints.
 *
 * Its UI is the one that the binary serves. Each demo has a home directory and a directory for temporary files of its
 * own, so a test sees what a demo leaves behind.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { until } from "./agent-runs.ts";
import { BINARY, launchBrowser, openWindow } from "./harness.ts";

/** It begins with several runs and a session, on a machine that may be busy. */
const START_MS_MAX = 60_000;
const STOP_MS_MAX = 15_000;

/** What `GET /v1/demo` says. */
export interface DemoThings {
	readonly run: string;
	readonly approval_node: string;
	readonly node_stalled: string;
	readonly file: string;
	readonly line: number;
	readonly world: string;
	readonly persons: readonly [string, string];
	readonly context: string;
}

export interface Demo {
	readonly link: string;
	readonly things: DemoThings;
	readonly page: Page;
	/** Errors of the browser's console and uncaught exceptions so far. */
	readonly consoleErrors: string[];
	/** The JSON of an answer to the owner. Not 2xx is an error. */
	get<T>(path: string): Promise<T>;
	/** Ends the demo as Ctrl-C does. Resolves to the names of the temporary files that it left. */
	end(): Promise<readonly string[]>;
	/** Ends everything, also after a test that failed. */
	stop(): Promise<void>;
}

export interface DemoOptions {
	/** Where the demo makes its directory; a directory of its own unless given. */
	readonly temporary?: string;
}

export async function startDemo(
	viewport: { readonly width: number; readonly height: number },
	options: DemoOptions = {},
): Promise<Demo> {
	if (!existsSync(BINARY)) throw new Error(`${BINARY} does not exist: build it, or set TURNKEEP_BIN`);
	const root = await mkdtemp(join(tmpdir(), "turnkeep-demo-"));
	const temporary = options.temporary ?? join(root, "tmp");
	await mkdir(temporary, { recursive: true });
	const args = ["up", "--demo", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--json"];
	// A session of its own, so that no desktop and no other broker of this machine takes part.
	const own = { HOME: root, XDG_RUNTIME_DIR: root, TMPDIR: temporary, DISPLAY: "", WAYLAND_DISPLAY: "" };
	const child = spawn(BINARY, args, { env: { ...process.env, ...own }, stdio: ["ignore", "pipe", "pipe"] });
	// A test that fails before `stop` must not leave a server behind.
	const kill = () => void child.kill("SIGKILL");
	process.once("exit", kill);
	const link = new URL(await readLink(child));
	const get = <T>(path: string) => getJson<T>(link, path);
	const things = await until(() => get<DemoThings>("/v1/demo").catch(() => undefined), "a demo", START_MS_MAX);
	const browser = await launchBrowser();
	const { page, consoleErrors } = await openWindow(browser, link.origin, { viewport });
	return {
		link: link.href,
		things,
		page,
		consoleErrors,
		get,
		async end() {
			await endProcess(child);
			return readdir(temporary);
		},
		async stop() {
			process.off("exit", kill);
			await browser.close();
			await endProcess(child);
			await rm(root, { recursive: true, force: true });
		},
	};
}

/** The link in the JSON that the server prints when it is ready. */
function readLink(child: ChildProcess): Promise<string> {
	return new Promise((resolve, reject) => {
		let printed = "";
		let errors = "";
		const fail = (why: string) => reject(new Error(`the demo ${why}; it printed:\n${printed}${errors}`));
		const timer = setTimeout(() => fail("did not start in time"), START_MS_MAX);
		child.stdout?.on("data", (piece: Buffer) => {
			printed += piece.toString();
			const link = /"link":\s*"([^"]+)"/.exec(printed)?.[1];
			if (link === undefined) return;
			clearTimeout(timer);
			resolve(link);
		});
		child.stderr?.on("data", (piece: Buffer) => {
			errors += piece.toString();
		});
		child.once("error", (error) => fail(`did not start: ${error.message}`));
		child.once("exit", (code) => {
			clearTimeout(timer);
			fail(`ended with ${code}`);
		});
	});
}

async function getJson<T>(link: URL, path: string): Promise<T> {
	const headers = { authorization: `Bearer ${link.searchParams.get("token")}` };
	const response = await fetch(new URL(path, link), { headers });
	if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
	return (await response.json()) as T;
}

async function endProcess(child: ChildProcess): Promise<void> {
	if (child.exitCode !== null || child.signalCode !== null) return;
	const ended = new Promise((resolve) => child.once("exit", resolve));
	const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS_MAX);
	child.kill("SIGINT");
	await ended;
	clearTimeout(timer);
}

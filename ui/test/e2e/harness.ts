/**
 * A real server on a temporary data directory, and Chromium, signed in through the link that the server prints.
 *
 * `const h = await startHarness()`, `h.open("/runs")`, `h.stop()`. Ports are free ones on 127.0.0.1. The server serves
 * the UI itself, with its cookie and its headers. A debug build reads it from the `ui/dist` of its own checkout. With
 * `UI_DEV=1` Vite serves the sources of this checkout and passes the API on, which needs no build.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { createServer } from "vite";
import { serverProxy } from "../../build/server-proxy.ts";

const UI_DIR = fileURLToPath(new URL("../..", import.meta.url));
const OUT_DIR = join(UI_DIR, "test/e2e/out");
/** The program. Called by the name `turnkeep-agent-script`, it is the scripted agent. */
export const BINARY = process.env.TURNKEEP_BIN ?? join(UI_DIR, "../target/debug/turnkeep");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const START_MS_MAX = 30_000;
const STOP_MS_MAX = 10_000;
/** How long a page may take for anything; a busy machine is slow, and a missing element should not take minutes. */
const PAGE_MS_MAX = 15_000;

export interface HarnessOptions {
	/** More arguments of `turnkeep up`. */
	readonly args?: readonly string[];
	/** A folder for everything, which must not exist; one with a new name unless given. */
	readonly root?: string;
	/** A configuration file, as TOML. */
	readonly config?: string;
	/** The size of the window. */
	readonly viewport?: { readonly width: number; readonly height: number };
	readonly colorScheme?: "light" | "dark";
}

export interface Harness {
	/** Where the UI is. */
	readonly uiUrl: string;
	/** Where the server is. */
	readonly serverUrl: string;
	/** Where it speaks the binary protocol, as `host:port`. */
	readonly binaryAddress: string;
	readonly token: string;
	readonly dataDir: string;
	/** A directory for repositories and files, removed with the harness. */
	readonly workDir: string;
	readonly context: BrowserContext;
	readonly page: Page;
	/** Errors of the browser's console and uncaught exceptions so far. */
	readonly consoleErrors: string[];
	/** Opens a path of the UI and waits until its heading is there. */
	open(path: string): Promise<void>;
	/** Waits until the window says that it is connected. */
	connected(): Promise<void>;
	/** A request to the server with the owner's token; the JSON of its answer. Not 2xx is an error. */
	api<T = unknown>(path: string, init?: { readonly method?: string; readonly body?: unknown }): Promise<T>;
	/** Runs the command line of the same binary against the server; resolves to its output. */
	cli(args: readonly string[], input?: string): Promise<string>;
	/** Writes `test/e2e/out/NAME.png`. */
	screenshot(name: string): Promise<void>;
	/** Stops and starts the server on the same port of HTTP and the same data. */
	stopServer(): Promise<void>;
	startServer(): Promise<void>;
	/** Ends the server at once, as a loss of power would. */
	killServer(): Promise<void>;
	stop(): Promise<void>;
}

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
	if (!existsSync(BINARY)) throw new Error(`${BINARY} does not exist: build it, or set TURNKEEP_BIN`);
	const root = options.root ?? (await mkdtemp(join(tmpdir(), "turnkeep-ui-")));
	if (options.root !== undefined) await mkdir(root);
	const [dataDir, workDir] = [join(root, "data"), join(root, "work")];
	await mkdir(workDir);
	const server = new Server(root, dataDir, options);
	await server.start();
	const token = (await readFile(join(dataDir, "token"), "utf8")).trim();
	const dev = process.env.UI_DEV === "1" ? await serveSources(server.url, token) : null;
	const uiUrl = dev?.url ?? server.url;
	const browser = await launchBrowser();
	const { context, page, consoleErrors } = await openWindow(browser, uiUrl, options);
	await signIn(context, token);
	return {
		uiUrl,
		serverUrl: server.url,
		binaryAddress: server.binaryAddress,
		token,
		dataDir,
		workDir,
		context,
		page,
		consoleErrors,
		async open(path) {
			await page.goto(path);
			await page.waitForSelector("h1");
		},
		connected: () => page.locator('[data-connection="connected"]').waitFor(),
		api: (path, init) => callApi(server.url, token, path, init),
		cli: (args, input) => runCli([...args, "--data", dataDir], input),
		async screenshot(name) {
			await mkdir(OUT_DIR, { recursive: true });
			await page.screenshot({ path: join(OUT_DIR, `${name}.png`) });
		},
		stopServer: () => server.stop(),
		startServer: () => server.start(),
		killServer: () => server.stop("SIGKILL"),
		async stop() {
			await browser.close();
			await dev?.close();
			await server.stop();
			await rm(root, { recursive: true, force: true });
		},
	};
}

/** The server's process. It keeps its port over a restart. */
class Server {
	url = "";
	binaryAddress = "";
	#process: ChildProcess | null = null;

	constructor(
		private readonly root: string,
		private readonly dataDir: string,
		private readonly options: HarnessOptions,
	) {}

	async start(): Promise<void> {
		const http = this.url === "" ? "127.0.0.1:0" : new URL(this.url).host;
		const config = join(this.root, "config.toml");
		await writeFile(config, this.options.config ?? "");
		const args = ["up", "--data", this.dataDir, "--http", http, "--listen", "127.0.0.1:0", "--config", config];
		// A session of its own, so that no desktop and no other broker of this machine takes part.
		const env = { ...process.env, HOME: this.root, XDG_RUNTIME_DIR: this.root, DISPLAY: "", WAYLAND_DISPLAY: "" };
		const child = spawn(BINARY, [...args, ...(this.options.args ?? [])], { env, stdio: ["ignore", "pipe", "pipe"] });
		this.#process = child;
		// A test that fails before `stop` must not leave a server behind.
		process.once("exit", this.#kill);
		const { url, binaryAddress } = await readAddresses(child);
		this.url = url;
		this.binaryAddress = binaryAddress;
	}

	readonly #kill = (): void => void this.#process?.kill("SIGKILL");

	async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
		const child = this.#process;
		this.#process = null;
		process.off("exit", this.#kill);
		if (child === null || child.exitCode !== null) return;
		const ended = new Promise((resolve) => child.once("exit", resolve));
		const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS_MAX);
		child.kill(signal);
		await ended;
		clearTimeout(timer);
	}
}

/** The addresses that the server prints when it is ready. */
function readAddresses(child: ChildProcess): Promise<{ readonly url: string; readonly binaryAddress: string }> {
	return new Promise((resolve, reject) => {
		let printed = "";
		const fail = (why: string) => reject(new Error(`the server ${why}; it printed:\n${printed}`));
		const timer = setTimeout(() => fail("did not start in time"), START_MS_MAX);
		const onPrinted = (piece: Buffer) => {
			printed += piece.toString();
			const link = /https?:\/\/127\.0\.0\.1:\d+/.exec(printed);
			if (link === null) return;
			clearTimeout(timer);
			resolve({ url: link[0], binaryAddress: /Binary:\s+(\S+)/.exec(printed)?.[1] ?? "" });
		};
		child.stdout?.on("data", onPrinted);
		child.stderr?.on("data", onPrinted);
		child.once("exit", (code) => {
			clearTimeout(timer);
			fail(`ended with ${code}`);
		});
	});
}

/** Follows the link that the server prints, after which the window has the owner's cookie. */
async function signIn(context: BrowserContext, token: string): Promise<void> {
	const page = await (await context.request.get(`/?token=${token}`)).text();
	if (!page.includes('id="root"')) {
		throw new Error(`${BINARY} serves no UI: run \`npm run build\` in the checkout that it was built from`);
	}
}

async function serveSources(target: string, token: string): Promise<{ url: string; close: () => Promise<void> }> {
	const listen = { host: "127.0.0.1", port: 0, strictPort: true, proxy: serverProxy(target, token) };
	const dev = await createServer({ root: UI_DIR, server: listen, logLevel: "error" });
	await dev.listen();
	return { url: addressOf(dev.httpServer?.address()), close: () => dev.close() };
}

function addressOf(address: unknown): string {
	if (typeof address === "object" && address !== null && "port" in address) return `http://127.0.0.1:${address.port}`;
	throw new Error("the UI's server has no address");
}

export function launchBrowser(): Promise<Browser> {
	return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
}

/** A window of its own, and the errors of its console. */
export async function openWindow(browser: Browser, baseURL: string, options: HarnessOptions) {
	const { viewport = { width: 1280, height: 800 }, colorScheme = "light" } = options;
	const context = await browser.newContext({ baseURL, viewport, colorScheme });
	context.setDefaultTimeout(PAGE_MS_MAX);
	const page = await context.newPage();
	const consoleErrors: string[] = [];
	page.on("console", (message) => {
		// The UI asks whether the server is a demo, and the browser logs the 404 of every other server.
		if (message.type() !== "error" || message.location().url.endsWith("/v1/demo")) return;
		consoleErrors.push(`${page.url()}: ${message.text()}`);
	});
	page.on("pageerror", (error) => consoleErrors.push(`${page.url()}: ${error.message}`));
	return { context, page, consoleErrors };
}

async function callApi<T>(
	serverUrl: string,
	token: string,
	path: string,
	init: { readonly method?: string; readonly body?: unknown } = {},
): Promise<T> {
	const body = init.body === undefined ? {} : { body: JSON.stringify(init.body) };
	const response = await fetch(serverUrl + path, {
		method: init.method ?? (init.body === undefined ? "GET" : "POST"),
		headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
		...body,
	});
	const text = await response.text();
	if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
	return (text === "" ? null : JSON.parse(text)) as T;
}

function runCli(args: readonly string[], input = ""): Promise<string> {
	return new Promise((resolve, reject) => {
		const child = spawn(BINARY, [...args], { stdio: ["pipe", "pipe", "pipe"] });
		let out = "";
		let errors = "";
		child.stdout.on("data", (piece: Buffer) => (out += piece.toString()));
		child.stderr.on("data", (piece: Buffer) => (errors += piece.toString()));
		child.once("error", reject);
		child.once("exit", (code) => {
			if (code === 0) resolve(out);
			else reject(new Error(`turnkeep ${args.join(" ")} ended with ${code}: ${errors}`));
		});
		child.stdin.end(input);
	});
}

/** A real server for tests: the binary that TURNKEEP_BIN names, on free ports, in a directory of its own. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const START_MS_MAX = 60_000;

export class TestServer {
	readonly #flags: readonly string[];
	#child: ChildProcess | null = null;
	#address = "127.0.0.1:0";
	#http = "127.0.0.1:0";

	private constructor(
		readonly dir: string,
		flags: readonly string[],
	) {
		this.#flags = flags;
	}

	/** Starts a server; without a token unless `auth` is set. */
	static async start({ auth = false, flags = [] as string[] } = {}): Promise<TestServer> {
		const dir = await mkdtemp(join(tmpdir(), "turnkeep-ts-"));
		const server = new TestServer(dir, auth ? flags : ["--no-auth", ...flags]);
		try {
			await server.restart();
		} catch (error) {
			await server.stop();
			throw error;
		}
		return server;
	}

	/** Where the binary protocol listens. */
	get address(): string {
		return this.#address;
	}

	/** Where HTTP listens. */
	get url(): string {
		return `http://${this.#http}`;
	}

	/** The owner's token. */
	async token(): Promise<string> {
		return (await readFile(join(this.dir, "data", "token"), "utf8")).trim();
	}

	/** Starts it, again where it listened before. */
	async restart(): Promise<void> {
		const args = ["up", "--data", join(this.dir, "data"), "--listen", this.#address, "--http", this.#http];
		const env = { ...process.env, XDG_CONFIG_HOME: this.dir, XDG_RUNTIME_DIR: this.dir };
		const child = spawn(binary(), [...args, ...this.#flags], { stdio: ["ignore", "pipe", "pipe"], env });
		this.#child = child;
		children.add(child);
		child.once("exit", () => children.delete(child));
		const [address, http] = await listening(child);
		this.#address = address;
		this.#http = http;
	}

	/** Ends it without warning, as a crash would. */
	async kill(): Promise<void> {
		const child = this.#child;
		this.#child = null;
		if (child === null || child.exitCode !== null || child.signalCode !== null) return;
		child.kill("SIGKILL");
		await once(child, "exit");
	}

	/** Ends it and removes its directory. */
	async stop(): Promise<void> {
		await this.kill();
		await rm(this.dir, { recursive: true, force: true });
	}
}

/** No server outlives the tests, however they end. */
const children = new Set<ChildProcess>();
process.once("exit", () => {
	for (const child of children) child.kill("SIGKILL");
});

function binary(): string {
	const path = process.env.TURNKEEP_BIN;
	if (path === undefined || path === "") {
		throw new Error("TURNKEEP_BIN is not set: run ./x test, or set it to the path of a turnkeep binary");
	}
	return path;
}

/** Waits until the server has said where it listens. */
async function listening(child: ChildProcess): Promise<[address: string, http: string]> {
	const said: string[] = [];
	const timer = setTimeout(() => child.kill("SIGKILL"), START_MS_MAX);
	child.stderr?.on("data", (chunk: Buffer) => said.push(chunk.toString()));
	child.on("error", (error) => said.push(error.message));
	try {
		if (child.stdout === null) throw new Error("the server has no output");
		for await (const line of createInterface({ input: child.stdout })) {
			said.push(line);
			const address = find(said, /^Binary:\s+(\S+)/);
			const http = find(said, /^HTTP:\s+https?:\/\/(\S+)/);
			if (line.startsWith("Open:") && address && http) return [address, http];
		}
		throw new Error(`the server did not start: ${said.join("\n")}`);
	} finally {
		clearTimeout(timer);
		child.stdout?.resume();
	}
}

function find(lines: readonly string[], pattern: RegExp): string | undefined {
	for (const line of lines) {
		const found = pattern.exec(line)?.[1];
		if (found !== undefined) return found;
	}
	return undefined;
}

/** Wrapped terminals for tests. */

import { type ChildProcess, spawn } from "node:child_process";
import { dirname } from "node:path";
import { until } from "./agent-runs.ts";
import { BINARY, type Harness } from "./harness.ts";

export interface SessionView {
	readonly session: string;
	readonly name?: string;
	readonly turns: number;
	readonly state?: string;
	readonly connected: boolean;
}

/** Wraps a program in a pseudo terminal, which `script` makes. What is written to its standard input is typed. */
export function wrapTerminal(harness: Harness, args: readonly string[]): ChildProcess {
	const command = [BINARY, "wrap", "--data", harness.dataDir, ...args].join(" ");
	const env = { ...process.env, HOME: harness.workDir, XDG_RUNTIME_DIR: dirname(harness.dataDir), TERM: "xterm" };
	const child = spawn("script", ["-qfec", command, "/dev/null"], { env, stdio: ["pipe", "pipe", "ignore"] });
	child.stdout?.resume();
	return child;
}

export async function sessionCalled(harness: Harness, name: string): Promise<SessionView | undefined> {
	const { sessions } = await harness.api<{ sessions: readonly SessionView[] }>("/v1/sessions");
	return sessions.find((each) => each.name === name);
}

/** A shared shell that has printed a line, and so has one captured turn. */
export async function wrapSharedShell(harness: Harness, name: string): Promise<ChildProcess> {
	const shell = wrapTerminal(harness, ["--share", "--name", name, "--", "bash", "--norc"]);
	const session = () => sessionCalled(harness, name);
	await until(async () => (await session())?.state === "ready", `the session ${name}`);
	shell.stdin?.write("echo 3 passed\n");
	await until(async () => ((await session())?.turns ?? 0) > 0, "a captured turn");
	return shell;
}

/** Every example runs against a real server, and every verb has one. The document's first program runs as well. */

import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MsgType } from "../src/wire/frame.js";
import { TestServer } from "./server.js";
import { repositoryFile } from "./testdata.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));
const examples = readdirSync(`${root}/examples`).filter((name) => name.endsWith(".mjs"));

let server: TestServer;

beforeAll(async () => {
	if (!existsSync(`${root}/dist/node/index.js`)) throw new Error("the package is not built: run npm run build");
	server = await TestServer.start({ auth: true });
});

afterAll(() => server?.stop());

/** What a program says; it must end by itself, with success. */
async function output(args: string[]): Promise<string> {
	const env = {
		...process.env,
		TURNKEEP_ADDR: server.address,
		TURNKEEP_HTTP: server.url,
		TURNKEEP_TOKEN: await server.token(),
	};
	const { stdout, stderr } = await run(process.execPath, args, { cwd: root, env, timeout: 60_000 });
	expect(stderr).toBe("");
	return stdout;
}

describe("examples", () => {
	it.each(examples)("%s", async (name) => {
		expect(await output([`examples/${name}`])).not.toBe("");
	});

	it("cover every verb", () => {
		const spelling: Record<string, string> = {
			CtxCreate: "create-context",
			CtxFork: "fork-context",
			RegistryPutBundle: "put-bundle",
			Cancel: "subscribe",
		};
		const kebab = (verb: string) => verb.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
		// HELLO is what `connect` says, and ERROR is never asked.
		const verbs = Object.keys(MsgType).filter((verb) => verb !== "Hello" && verb !== "Error");
		const missing = verbs
			.map((verb) => `${spelling[verb] ?? kebab(verb)}.mjs`)
			.filter((name) => !examples.includes(name));
		expect(missing).toEqual([]);
	});
});

describe("docs/clients/typescript.md", () => {
	it("begins with a program that works when pasted", async () => {
		const program = /```js\n(.*?)```/s.exec(repositoryFile("docs/clients/typescript.md"))?.[1] ?? "";
		expect(await output(["--input-type=module", "--eval", program])).toContain("hello");
	});
});

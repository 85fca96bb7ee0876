/** An agent's view of a world: the protocol's own client, connected by what `turnkeep world token --mcp` prints. */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestServer } from "./server.js";

const run = promisify(execFile);
const binary = process.env.TURNKEEP_BIN ?? "";

let server: TestServer;

async function turnkeep(...args: string[]): Promise<string> {
	const env = { ...process.env, TURNKEEP_DATA: join(server.dir, "data"), XDG_CONFIG_HOME: server.dir };
	return (await run(binary, args, { env })).stdout;
}

/** The words of a printed line; quotes as a shell takes them. */
function words(line: string): string[] {
	return [...line.trim().matchAll(/"([^"]*)"|(\S+)/g)].map((word) => word[1] ?? word[2] ?? "");
}

function over(line: string): Transport {
	const said = words(line);
	const separator = said.indexOf("--");
	if (separator >= 0) {
		const env: Record<string, string> = {};
		said.forEach((word, at) => {
			const [name, value] = (said[at + 1] ?? "").split(/=(.*)/s);
			if (word === "--env" && name && value) env[name] = value;
		});
		return new StdioClientTransport({ command: binary, args: said.slice(separator + 2), env });
	}
	const url = said.find((word) => word.startsWith("http://")) ?? "";
	const header = said[said.indexOf("--header") + 1] ?? "";
	const headers = { Authorization: header.replace("Authorization: ", "") };
	return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
}

beforeAll(async () => {
	server = await TestServer.start({ auth: true });
	await turnkeep("world", "new", "team", "--profile", "workspace", "--person", "ANN", "--person", "BOB");
	await turnkeep("invoke", "team", "Ship the refund fix today.");
	await turnkeep("world", "write", "team", "--as", "BOB", "--to", "GEORGE", "The refund blocker.");
});

afterAll(() => server.stop());

describe("P22: a pasted line connects a client of the protocol", () => {
	it.each(["claude", "codex", "gemini"])("%s reads, searches and writes as its person", async (program) => {
		const line = await turnkeep("world", "token", "team", "ANN", "--write", "--mcp", program);
		expect(line.startsWith(`${program} mcp add `)).toBe(true);
		const client = new Client({ name: "test", version: "1" });
		await client.connect(over(line));
		try {
			expect(client.getServerVersion()?.name).toBe("turnkeep");
			const tools = (await client.listTools()).tools.map((tool) => tool.name);
			expect(tools).toContain("ledger_write");
			expect(tools).not.toContain("store_turns");
			const found = await client.callTool({ name: "ledger_search", arguments: { query: "refund" } });
			expect(found.isError).toBe(false);
			expect(JSON.stringify(found)).toContain("Ship the refund fix today.");
			expect(JSON.stringify(found)).not.toContain("blocker");
			const text = `written by ${program}`;
			const wrote = await client.callTool({ name: "ledger_write", arguments: { text } });
			expect(wrote.structuredContent).toMatchObject({ entries: [{ audience: "everyone" }], replayed: false });
			expect(JSON.stringify(wrote)).not.toContain(text);
			const read = await client.callTool({ name: "ledger_read", arguments: {} });
			expect(JSON.stringify(read)).toContain(text);
			const refused = await client.callTool({ name: "ledger_write", arguments: { text, input_text: "x" } });
			expect(refused.isError).toBe(true);
		} finally {
			await client.close();
		}
		expect(await turnkeep("stream", "team")).toContain(`written by ${program}`);
	});
});

/**
 * The protocol's own TypeScript clients, each pinned to one revision, over HTTP and over standard input and output.
 * Every one of them agrees on its own revision with the server, reads, searches, waits and writes; the newest also
 * subscribes.
 */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import * as newest from "@modelcontextprotocol/client";
import * as newestStdio from "@modelcontextprotocol/client/stdio";
import { Client as Client202511 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio202511 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as Http202511 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client as Client202506 } from "mcp-sdk-2025-06-18/client/index.js";
import { StdioClientTransport as Stdio202506 } from "mcp-sdk-2025-06-18/client/stdio.js";
import { StreamableHTTPClientTransport as Http202506 } from "mcp-sdk-2025-06-18/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestServer } from "./server.js";

const run = promisify(execFile);
const binary = process.env.TURNKEEP_BIN ?? "";
const own = { name: "test", version: "1" };
const TRANSPORTS = ["http", "stdio"] as const;
const EVENT_MS_MAX = 60_000;

let server: TestServer;
let token: string;

/** What the tests use of a client, whichever SDK it is from. */
interface AnyClient {
	callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
	listTools(): Promise<{ tools: { name: string }[] }>;
	getInstructions(): string | undefined;
	getServerVersion(): { name: string } | undefined;
	close(): Promise<void>;
}

async function turnkeep(...args: string[]): Promise<string> {
	const env = { ...process.env, TURNKEEP_DATA: join(server.dir, "data"), XDG_CONFIG_HOME: server.dir };
	return (await run(binary, args, { env })).stdout;
}

function http(): { url: URL; options: { requestInit: { headers: Record<string, string> } } } {
	return {
		url: new URL(`${server.url}/mcp`),
		options: { requestInit: { headers: { Authorization: `Bearer ${token}` } } },
	};
}

function stdio(): { command: string; args: string[]; env: Record<string, string> } {
	const env = { TURNKEEP_TOKEN: token, TURNKEEP_DATA: join(server.dir, "data"), XDG_CONFIG_HOME: server.dir };
	return { command: binary, args: ["mcp"], env: { ...env, PATH: process.env.PATH ?? "" } };
}

type Over = (typeof TRANSPORTS)[number];

/** A client, and the revision that it agreed on with the server. */
interface Connected {
	client: AnyClient;
	agreed: string | undefined;
}

/** Records the revision that an older client tells its transport after the handshake. */
function recordRevision(transport: object): { agreed: string | undefined } {
	const told = transport as { setProtocolVersion?: (version: string) => void };
	// The transport over standard input and output has no such method.
	const original = told.setProtocolVersion?.bind(transport);
	const record: { agreed: string | undefined } = { agreed: undefined };
	told.setProtocolVersion = (version) => {
		record.agreed = version;
		original?.(version);
	};
	return record;
}

async function connect202506(over: Over): Promise<Connected> {
	const client = new Client202506(own);
	const { url, options } = http();
	const transport = over === "http" ? new Http202506(url, options) : new Stdio202506(stdio());
	const record = recordRevision(transport);
	// Its declarations disagree about a property that may be undefined.
	await client.connect(transport as Parameters<typeof client.connect>[0]);
	return { client: client as AnyClient, agreed: record.agreed };
}

async function connect202511(over: Over): Promise<Connected> {
	const client = new Client202511(own);
	const { url, options } = http();
	const transport = over === "http" ? new Http202511(url, options) : new Stdio202511(stdio());
	const record = recordRevision(transport);
	await client.connect(transport as Parameters<typeof client.connect>[0]);
	return { client: client as AnyClient, agreed: record.agreed };
}

async function connect202607(over: Over, mode: "auto" | { pin: string }): Promise<newest.Client> {
	const client = new newest.Client(own, { versionNegotiation: { mode } });
	const { url, options } = http();
	const transport =
		over === "http"
			? new newest.StreamableHTTPClientTransport(url, options)
			: new newestStdio.StdioClientTransport(stdio());
	await client.connect(transport);
	return client;
}

async function connectNewest(over: Over, mode: "auto" | { pin: string }): Promise<Connected> {
	const client = await connect202607(over, mode);
	return { client: client as AnyClient, agreed: client.getNegotiatedProtocolVersion() };
}

interface ClientCase {
	name: string;
	revision: string;
	connect: (over: Over) => Promise<Connected>;
}

const CLIENTS: ClientCase[] = [
	{ name: "2025-06-18", revision: "2025-06-18", connect: connect202506 },
	{ name: "2025-11-25", revision: "2025-11-25", connect: connect202511 },
	{
		name: "2026-07-28",
		revision: "2026-07-28",
		connect: (over) => connectNewest(over, { pin: "2026-07-28" }),
	},
	{ name: "found out", revision: "2026-07-28", connect: (over) => connectNewest(over, "auto") },
];
const CASES = CLIENTS.flatMap((one) => TRANSPORTS.map((over) => ({ ...one, over })));

beforeAll(async () => {
	server = await TestServer.start({ auth: true });
	await turnkeep("world", "new", "team", "--profile", "workspace", "--person", "ANN", "--person", "BOB");
	await turnkeep("invoke", "team", "Ship the refund fix today.");
	const minted = JSON.parse(await turnkeep("world", "token", "team", "ANN", "--write", "--json"));
	token = minted.token;
});

afterAll(() => server.stop());

describe("a client of each revision", () => {
	it.each(CASES)("$name over $over reads, searches and writes", async ({ name, revision, connect, over }) => {
		const { client, agreed } = await connect(over);
		try {
			expect(agreed).toBe(revision);
			expect(client.getServerVersion()?.name).toBe("turnkeep");
			expect(client.getInstructions()).toContain("You are ANN");
			const tools = (await client.listTools()).tools.map((tool) => tool.name);
			expect(tools).toContain("whoami");
			expect(tools).toContain("ledger_write");
			const me = await client.callTool({ name: "whoami", arguments: {} });
			expect(me).toMatchObject({ structuredContent: { person_id: "ANN", world_id: "team" } });
			const found = await client.callTool({ name: "ledger_search", arguments: { query: "refund" } });
			expect(JSON.stringify(found)).toContain("Ship the refund fix today.");
			const text = `written in ${name} over ${over}`;
			const read = client.callTool({
				name: "ledger_read",
				arguments: { cursor: cursorOf(me), wait_seconds: 50 },
			});
			const wrote = await client.callTool({ name: "ledger_write", arguments: { text, visible_to: ["Bob"] } });
			expect(wrote).toMatchObject({ structuredContent: { entries: [{ audience: "only you and BOB" }] } });
			expect(JSON.stringify(await read)).toContain(text);
			const refused = await client.callTool({ name: "ledger_write", arguments: { text: " " } });
			expect(refused).toMatchObject({ isError: true });
		} finally {
			await client.close();
		}
	});

	it.each(TRANSPORTS)(
		"2026-07-28 over %s is told of news",
		async (over) => {
			const client = await connect202607(over, { pin: "2026-07-28" });
			try {
				const { resources } = await client.listResources();
				const uri = resources[0]?.uri ?? "";
				expect(uri).toBe("turnkeep://worlds/team/stream");
				const told = new Promise<string>((resolve) => {
					client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
						resolve(params.uri);
					});
				});
				const subscription = await client.listen({ resourceSubscriptions: [uri] });
				await turnkeep("invoke", "team", `News over ${over}.`);
				expect(await told).toBe(uri);
				await subscription.close();
				const { contents } = await client.readResource({ uri });
				expect(JSON.stringify(contents)).toContain(`News over ${over}.`);
			} finally {
				await client.close();
			}
		},
		EVENT_MS_MAX,
	);
});

function cursorOf(answer: unknown): string {
	return (answer as { structuredContent: { cursor_now: string } }).structuredContent.cursor_now;
}

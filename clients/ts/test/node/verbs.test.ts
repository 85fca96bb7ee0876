/** Every verb of the binary protocol against a real server. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
	type Client,
	ConnectError,
	type ContextId,
	connect,
	encodeTagged,
	HashMismatchError,
	hashOf,
	payloadOf,
	ServerError,
	type TurnId,
	turnId,
	verifyTurn,
} from "../../src/node/index.js";
import { TestServer } from "../server.js";
import { repositoryFile, repositoryPath, vectors } from "../testdata.js";

const TYPE = { id: "test.Message", version: 1 };
const payload = (text: string) => encodeTagged({ 1: text });

let server: TestServer;
let client: Client;

beforeAll(async () => {
	server = await TestServer.start();
	client = await connect(server.address, { verifyReads: true });
});

afterAll(async () => {
	client?.close();
	await server?.stop();
});

async function contextWith(texts: readonly string[]): Promise<{ contextId: ContextId; turns: TurnId[] }> {
	const { contextId } = await client.createContext();
	const acks = await Promise.all(texts.map((text) => client.append({ contextId, type: TYPE, payload: payload(text) })));
	return { contextId, turns: acks.map((ack) => ack.turnId) };
}

async function refusal(promise: Promise<unknown>): Promise<ServerError> {
	const error = await promise.then(
		() => null,
		(caught: unknown) => caught,
	);
	expect(error).toBeInstanceOf(ServerError);
	return error as ServerError;
}

describe("contexts", () => {
	it("are created empty, from a turn, and once per key", async () => {
		const empty = await client.createContext();
		expect(empty).toMatchObject({ headTurnId: null, headDepth: 0 });
		expect(await client.head(empty.contextId)).toEqual(empty);
		const { turns } = await contextWith(["a", "b"]);
		const base = turns[1] as TurnId;
		expect(await client.createContext({ base })).toMatchObject({ headTurnId: base, headDepth: 1 });
		const fork = await client.forkContext({ base, key: "fork-1" });
		expect(fork).toMatchObject({ headTurnId: base, headDepth: 1 });
		expect(await client.forkContext({ base, key: Buffer.from("fork-1") })).toEqual(fork);
	});

	it("that do not exist are 404", async () => {
		const error = await refusal(client.head(999_999n as ContextId));
		expect(error).toMatchObject({ status: 404, code: "NotFound", isRetryable: false });
	});
});

describe("appends", () => {
	it("of one connection are applied in the order of the calls", async () => {
		const texts = Array.from({ length: 300 }, (_, index) => `turn ${index}`);
		const { contextId } = await contextWith(texts);
		const turns = await client.last(contextId, { limit: 1000 });
		expect(turns.map((turn) => Buffer.from(turn.payload))).toEqual(texts.map((text) => Buffer.from(payload(text))));
		expect(turns.map((turn) => turn.depth)).toEqual(texts.map((_, index) => index));
	});

	it("with the same key happen once", async () => {
		const { contextId } = await client.createContext();
		const append = { contextId, type: TYPE, payload: payload("once"), key: "k" };
		const acks = await Promise.all([client.append(append), client.append(append)]);
		expect(acks[0]).toEqual(acks[1]);
		expect(await client.last(contextId)).toHaveLength(1);
		expect(await refusal(client.append({ ...append, payload: payload("other") }))).toMatchObject({ status: 409 });
	});

	it("may name a parent, an expected head and a filesystem root", async () => {
		const { contextId, turns } = await contextWith(["a", "b"]);
		const [first, second] = turns as [TurnId, TurnId];
		const branch = await client.append({ contextId, parentId: first, type: TYPE, payload: payload("c") });
		expect(branch.depth).toBe(1);
		const conflict = await refusal(
			client.append({ contextId, expectedHead: second, type: TYPE, payload: payload("d") }),
		);
		expect(conflict).toMatchObject({ status: 409, details: { actual_head_turn_id: String(branch.turnId) } });
		expect(
			await refusal(client.append({ contextId, expectedHead: null, type: TYPE, payload: payload("e") })),
		).toMatchObject({
			status: 409,
		});
		const { hash: fsRoot } = await client.putBlob(Buffer.from([0x90]));
		const ack = await client.append({
			contextId,
			expectedHead: branch.turnId,
			fsRoot,
			type: TYPE,
			payload: payload("f"),
		});
		const [turn] = await client.last(contextId, { limit: 1, details: true });
		expect(turn).toMatchObject({ id: ack.turnId, parentId: branch.turnId, fsRoot });
		expect(turn?.createdAt).toBeInstanceOf(Date);
	});

	it("in a batch are all or none", async () => {
		const { contextId } = await client.createContext();
		const turns = ["a", "b", "c"].map((text) => ({ type: TYPE, payload: payload(text) }));
		const ack = await client.appendBatch({ contextId, turns, key: "batch", expectedHead: null });
		expect(ack.turns.map((turn) => turn.depth)).toEqual([0, 1, 2]);
		expect(await client.appendBatch({ contextId, turns, key: "batch", expectedHead: null })).toEqual(ack);
		const wrong = turns.map((turn, index) => (index === 1 ? { ...turn, hash: hashOf(payload("x")) } : turn));
		expect(await refusal(client.appendBatch({ contextId, turns: wrong }))).toMatchObject({ status: 409 });
		expect(await client.head(contextId)).toMatchObject({ headDepth: 2 });
	});

	it.each([
		["empty", 0],
		["of one byte", 1],
		["of 8 MiB", 8 << 20],
	])("carry payloads %s", async (_name, length) => {
		const bytes = Buffer.alloc(length, 0xa7);
		const { contextId } = await client.createContext();
		const ack = await client.append({ contextId, type: { id: "", version: 0 }, payload: bytes, encoding: 0 });
		const [turn] = await client.last(contextId);
		expect(ack.hash).toBe(hashOf(bytes));
		expect(turn).toMatchObject({ uncompressedLength: length, hash: ack.hash, encoding: 0, compression: "none" });
		expect(bytes.equals(turn?.payload ?? Buffer.from("nothing"))).toBe(true);
	});

	it("over the limit are refused before they are sent", async () => {
		const { contextId } = await client.createContext();
		const small = await connect(server.address, { requestBytesMax: 1000 });
		const append = { contextId, type: TYPE, payload: new Uint8Array(2000) };
		await expect(small.append(append)).rejects.toMatchObject({ name: "TooLargeError", bytes: 2000, max: 1000 });
		await small.head(contextId);
		small.close();
	});
});

describe("reads", () => {
	it("page back from any turn", async () => {
		const { contextId, turns } = await contextWith(["a", "b", "c", "d"]);
		const ids = async (page: Promise<readonly { id: TurnId }[]>) => (await page).map((turn) => turn.id);
		expect(await ids(client.last(contextId, { limit: 2 }))).toEqual(turns.slice(2));
		expect(await ids(client.before(contextId, turns[2] as TurnId, { limit: 1 }))).toEqual([turns[1]]);
		expect(await ids(client.range(contextId, 1, { limit: 2 }))).toEqual(turns.slice(1, 3));
		expect(await ids(client.range(contextId, 4))).toEqual([]);
		expect(await refusal(client.before(contextId, turnId(10n ** 18n)))).toMatchObject({ status: 404 });
	});

	it("give payloads only when they are wanted", async () => {
		const { contextId } = await contextWith(["a"]);
		const [turn] = await client.last(contextId, { payload: false });
		expect(turn?.payload).toHaveLength(0);
		expect(turn?.createdAt).toBeUndefined();
	});

	it("give payloads in the form in which they are kept, which is zstd when that is shorter", async () => {
		const bytes = encodeTagged({ 1: "the same again ".repeat(5000) });
		const { contextId } = await client.createContext();
		await client.append({ contextId, type: TYPE, payload: bytes });
		const [stored] = await client.last(contextId, { stored: true });
		expect(stored?.compression).toBe("zstd");
		expect(stored?.payload.length).toBeLessThan(bytes.length / 10);
		if (stored === undefined) throw new Error("no turn");
		expect(Buffer.from(payloadOf(stored)).equals(bytes)).toBe(true);
		verifyTurn(stored);
		expect(() => verifyTurn({ ...stored, hash: hashOf(Buffer.from("x")) })).toThrow(HashMismatchError);
	});

	it("iterate a whole history, newest first", async () => {
		const { contextId, turns } = await contextWith(Array.from({ length: 25 }, (_, index) => `${index}`));
		const seen: TurnId[] = [];
		for await (const turn of client.history(contextId, { pageTurns: 7 })) seen.push(turn.id);
		expect(seen).toEqual(turns.toReversed());
		const { contextId: empty } = await client.createContext();
		for await (const turn of client.history(empty)) throw new Error(`a turn ${turn.id} in an empty context`);
	});
});

describe("blobs, filesystem roots and the registry", () => {
	it("keeps blobs once and tells which it has", async () => {
		const bytes = Buffer.from(`a blob of ${Date.now()}`);
		const first = await client.putBlob(bytes);
		expect(first).toEqual({ hash: hashOf(bytes), wasNew: true });
		expect(await client.putBlob(bytes)).toEqual({ ...first, wasNew: false });
		expect(await client.hasBlobs([hashOf(Buffer.from("nobody has this")), first.hash])).toEqual([false, true]);
		expect(await client.hasBlobs([])).toEqual([]);
		expect(Buffer.from(await client.blob(first.hash)).equals(bytes)).toBe(true);
		expect(await refusal(client.blob(hashOf(Buffer.from("nor this"))))).toMatchObject({ status: 404 });
	});

	it("sets a turn's root once", async () => {
		const { turns } = await contextWith(["a"]);
		const id = turns[0] as TurnId;
		const { hash: root } = await client.putBlob(Buffer.from([0x90]));
		await client.attachFs(id, root);
		await client.attachFs(id, root);
		const { hash: other } = await client.putBlob(Buffer.from([0x91, 0xc0]));
		expect(await refusal(client.attachFs(id, other))).toMatchObject({ status: 409 });
	});

	it("publishes a bundle once", async () => {
		const bundle = vectors<{ bundle_id: string }>("payloads/sample-bundle.json");
		expect(await client.putBundle(bundle)).toBe(true);
		expect(await client.putBundle(JSON.stringify(bundle))).toBe(false);
		expect(await refusal(client.putBundle({ ...bundle, types: {} } as typeof bundle))).toMatchObject({ status: 409 });
	});
});

describe("subscriptions", () => {
	it("replay a context and follow it", async () => {
		const { contextId, turns } = await contextWith(["a", "b"]);
		const subscription = client.subscribe({ contextId, after: 0n, details: true });
		const seen: TurnId[] = [];
		for await (const { turn, contextId: from } of subscription) {
			expect(from).toBe(contextId);
			seen.push(turn.id);
			if (seen.length === 2) {
				expect(subscription.isCaughtUp).toBe(true);
				turns.push((await client.append({ contextId, type: TYPE, payload: payload("c") })).turnId);
			}
			if (seen.length === 3) break;
		}
		expect(seen).toEqual(turns);
		expect(await subscription.next()).toEqual({ done: true, value: undefined });
	});

	it("of everything give only what is new, and resume where they stood", async () => {
		const { contextId } = await contextWith(["old"]);
		const subscription = client.subscribe({ payload: false });
		const first = subscription.next();
		await waitFor(() => subscription.position !== null);
		const { turnId: fresh } = await client.append({ contextId, type: TYPE, payload: payload("new") });
		const { value } = await first;
		expect(value?.turn.id).toBe(fresh);
		await subscription.return();
		const { turnId: next } = await client.append({ contextId, type: TYPE, payload: payload("newer") });
		const resumed = client.subscribe({ after: subscription.position ?? 0n });
		expect((await resumed.next()).value?.turn.id).toBe(next);
		await resumed.return();
	});

	it("of a context that does not exist, and beyond the end, are refused", async () => {
		const missing = client.subscribe({ contextId: 999_999n as ContextId });
		expect(await refusal(missing.next())).toMatchObject({ status: 404 });
		const beyond = client.subscribe({ after: 10n ** 18n });
		expect(await refusal(beyond.next())).toMatchObject({ status: 409 });
	});
});

describe("connecting", () => {
	it("needs the right token", async () => {
		const guarded = await TestServer.start({ auth: true });
		try {
			expect(await refusal(connect(guarded.address))).toMatchObject({ status: 401, code: "Unauthorized" });
			expect(await refusal(connect(guarded.address, { token: "wrong" }))).toMatchObject({ status: 401 });
			const welcome = await connect(guarded.address, { token: await guarded.token() });
			expect(await welcome.createContext()).toMatchObject({ headDepth: 0 });
			welcome.close();
		} finally {
			await guarded.stop();
		}
	});

	it("speaks TLS with whom it trusts", async () => {
		const [cert, key] = ["cert", "key"].map((name) => repositoryPath(`crates/server/tests/http/tls/${name}.pem`));
		const guarded = await TestServer.start({ flags: ["--tls-cert", String(cert), "--tls-key", String(key)] });
		try {
			const ca = repositoryFile("crates/server/tests/http/tls/cert.pem");
			const trusting = await connect(guarded.address, { tls: { ca } });
			const { contextId } = await trusting.createContext();
			const bytes = Buffer.alloc(3 << 20, 7);
			await trusting.append({ contextId, type: TYPE, payload: bytes });
			const [turn] = await trusting.last(contextId);
			expect(bytes.equals(turn?.payload ?? Buffer.alloc(0))).toBe(true);
			trusting.close();
			const misnamed = connect(guarded.address, { tls: { ca, serverName: "elsewhere" } });
			await expect(misnamed).rejects.toBeInstanceOf(ConnectError);
			await expect(connect(guarded.address, { tls: {} })).rejects.toBeInstanceOf(ConnectError);
		} finally {
			await guarded.stop();
		}
	});

	it("fails with a ConnectError where nobody listens", async () => {
		await expect(connect("127.0.0.1:1")).rejects.toBeInstanceOf(ConnectError);
		await expect(connect("nonsense")).rejects.toBeInstanceOf(TypeError);
	});
});

/** Waits, a turn of the event loop at a time, until something holds; the test's time-out bounds it. */
async function waitFor(holds: () => boolean): Promise<void> {
	while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

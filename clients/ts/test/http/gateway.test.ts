/** Every route of the gateway against a real server. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Bundle } from "../../src/core/bundle.js";
import { encodeTagged } from "../../src/core/tagged.js";
import {
	type ContextId,
	contextId,
	GatewayClient,
	hashOf,
	ServerError,
	type StoreEvent,
	type TurnId,
	turnId,
} from "../../src/http/index.js";
import { TestServer } from "../server.js";
import { vectors } from "../testdata.js";

const BUNDLE: Bundle = {
	registry_version: 1,
	bundle_id: "gateway/test#1",
	types: {
		"test.Message": {
			versions: {
				1: {
					fields: {
						1: { name: "role", type: "u8", enum: "test.Role" },
						2: { name: "text", type: "string" },
						3: { name: "number", type: "u64", optional: true },
						4: { name: "at", type: "u64", semantic: "unix_ms", optional: true },
						5: { name: "bytes", type: "bytes", optional: true },
					},
				},
				2: {
					fields: {
						1: { name: "role", type: "u8", enum: "test.Role" },
						2: { name: "content", type: "string" },
					},
				},
			},
		},
	},
	enums: { "test.Role": { 1: "system", 2: "user" } },
};
const TYPE = { type_id: "test.Message", type_version: 1 };
const FULL = {
	role: "user",
	text: "hello",
	number: "18446744073709551615",
	at: "2025-12-19T20:00:00.123Z",
	bytes: "AP8=",
};

let server: TestServer;
let client: GatewayClient;

beforeAll(async () => {
	server = await TestServer.start({ auth: true });
	client = new GatewayClient({ baseUrl: `${server.url}/`, token: await server.token() });
	expect(await client.putBundle(BUNDLE)).toBe(true);
});

afterAll(() => server?.stop());

async function refusal(promise: Promise<unknown>): Promise<ServerError> {
	const error = await promise.then(
		() => null,
		(caught: unknown) => caught,
	);
	expect(error).toBeInstanceOf(ServerError);
	return error as ServerError;
}

async function contextWith(count: number): Promise<{ id: ContextId; turns: TurnId[] }> {
	const { context_id: id } = await client.createContext();
	const turns: TurnId[] = [];
	for (let number = 0; number < count; number += 1) {
		const data = { role: "user", text: `turn ${number}` };
		turns.push((await client.append(id, { ...TYPE, data })).turn_id);
	}
	return { id, turns };
}

describe("contexts", () => {
	it("are created, forked, labelled, listed", async () => {
		const key = "gateway-create";
		const created = await client.createContext({ labels: { room: "a b", kind: "chat" }, idempotency_key: key });
		expect(created).toMatchObject({ head_turn_id: "0", head_depth: 0, labels: { room: "a b", kind: "chat" } });
		expect(await client.createContext({ labels: { room: "a b", kind: "chat" }, idempotency_key: key })).toEqual(
			created,
		);
		expect(await client.context(created.context_id)).toEqual(created);
		const { turns } = await contextWith(2);
		const fork = await client.forkContext({ base_turn_id: turns[0] as TurnId });
		expect(fork).toMatchObject({ head_turn_id: turns[0], head_depth: 0 });
		const labelled = await client.setLabels(fork.context_id, { room: "a b" });
		expect(labelled.labels).toEqual({ room: "a b" });
		const page = await client.contexts({ label: ["room=a b"], limit: 10 });
		expect(page.contexts.map((context) => context.context_id)).toEqual([fork.context_id, created.context_id]);
		expect((await client.contexts({ label: ["room", "kind=chat"] })).contexts).toHaveLength(1);
	});

	it("are all listed, a page at a time", async () => {
		const seen: ContextId[] = [];
		for await (const context of client.allContexts({ limit: 2 })) seen.push(context.context_id);
		expect(new Set(seen).size).toBe(seen.length);
		expect(seen.length).toBe((await client.stats()).contexts);
	});

	it("that do not exist are 404", async () => {
		const error = await refusal(client.context(contextId("18446744073709551615")));
		expect(error).toMatchObject({ status: 404, code: "NotFound", isRetryable: false });
	});
});

describe("turns", () => {
	it("are appended by names or as bytes, once per key", async () => {
		const { context_id: id } = await client.createContext();
		const first = await client.append(id, { ...TYPE, data: FULL, idempotency_key: "k", expected_head_turn_id: "0" });
		expect(first).toMatchObject({ context_id: id, depth: 0, parent_turn_id: "0", replayed: false });
		const again = await client.append(id, { ...TYPE, data: FULL, idempotency_key: "k", expected_head_turn_id: "0" });
		expect(again).toEqual({ ...first, replayed: true });
		const payload = encodeTagged({ 1: 1, 2: "raw", 9: 2n ** 64n - 1n });
		const raw = await client.append(id, {
			...TYPE,
			payload_b64: Buffer.from(payload).toString("base64"),
			parent_turn_id: first.turn_id,
		});
		expect(raw.content_hash_b3).toBe(hashOf(payload));
		const conflict = await refusal(client.append(id, { ...TYPE, data: FULL, expected_head_turn_id: first.turn_id }));
		expect(conflict).toMatchObject({ status: 409, details: { actual_head_turn_id: raw.turn_id } });
		expect(await refusal(client.append(id, { type_id: "nobody", type_version: 1, data: {} }))).toMatchObject({
			status: 424,
		});
	});

	it("page back, and iterate newest first", async () => {
		const { id, turns } = await contextWith(7);
		const page = await client.turns(id, { limit: 3 });
		expect(page.turns.map((turn) => turn.turn_id)).toEqual(turns.slice(4));
		expect(page.next_before_turn_id).toBe(turns[4]);
		const older = await client.turns(id, { limit: 3, before_turn_id: turns[4] as TurnId });
		expect(older.turns.map((turn) => turn.turn_id)).toEqual(turns.slice(1, 4));
		const seen: TurnId[] = [];
		for await (const turn of client.history(id, { limit: 2 })) seen.push(turn.turn_id);
		expect(seen).toEqual(turns.toReversed());
	});

	it("know why they are there", async () => {
		const { id, turns } = await contextWith(2);
		const why = await client.why(`turn:${turns[1]}`);
		expect(why).toMatchObject({ ref: `turn:${turns[1]}`, complete: true });
		expect(why.chain.map((link) => link.ref)).toEqual([`turn:${turns[1]}`, `ctx:${id}`]);
		expect(await refusal(client.why("artifact://00000000-0000-4000-8000-000000000000#a/b c.ts:1"))).toMatchObject({
			status: 404,
		});
		expect(await refusal(client.why("nothing"))).toMatchObject({ status: 400 });
	});

	it("take every option of the gateway", async () => {
		const { context_id: id } = await client.createContext();
		const payload = encodeTagged({ 1: 2, 2: "x", 3: 7, 4: 1_766_174_400_123, 5: Buffer.of(0, 255), 9: "new" });
		const payload_b64 = Buffer.from(payload).toString("base64");
		const { turn_id: turn } = await client.append(id, { ...TYPE, payload_b64 });
		const shown = { role: "user", text: "x", number: "7", at: "2025-12-19T20:00:00.123Z", bytes: "AP8=" };
		const data = async (options: Parameters<GatewayClient["turn"]>[1]) => (await client.turn(turn, options)).data;
		expect(await data({})).toEqual(shown);
		expect(await data({ view: "both", enum_render: "number", u64_format: "number" })).toEqual({
			...shown,
			role: 2,
			number: 7,
		});
		expect(await data({ enum_render: "both", time_render: "unix_ms", bytes_render: "hex" })).toEqual({
			...shown,
			role: { label: "user", value: 2 },
			at: 1_766_174_400_123,
			bytes: "00ff",
		});
		expect(await data({ bytes_format: "len_only" })).toEqual({ ...shown, bytes: 2 });
		expect(await data({ type_hint_mode: "latest" })).toEqual({ role: "user", content: "x" });
		const explicit = { type_hint_mode: "explicit", as_type_id: "test.Message", as_type_version: "2" } as const;
		expect(await client.turn(turn, explicit)).toMatchObject({
			decoded_as: { type_id: "test.Message", type_version: 2 },
		});
		expect(await client.turn(turn, { include_unknown: "1" })).toMatchObject({ unknown: { 9: "new" } });
		expect(await client.turn(turn, { view: "raw" })).toMatchObject({
			bytes_b64: payload_b64,
			compression: 0,
			encoding: 1,
		});
		const [paged] = (await client.turns(id, { ...explicit, include_unknown: "1", view: "both" })).turns;
		expect(paged).toMatchObject({ data: { content: "x" }, bytes_b64: payload_b64 });
	});

	it("that cannot be shown say why, and do not hide the others", async () => {
		const { id } = await contextWith(1);
		const { turn_id: odd } = await client.append(id, { type_id: "nobody", type_version: 1, payload_b64: "gA==" });
		const [good, bad] = (await client.turns(id)).turns;
		expect(good?.data).toEqual({ role: "user", text: "turn 0" });
		expect(bad).toMatchObject({ turn_id: odd, error: { code: "FailedDependency", status: 424 } });
		expect(await refusal(client.turn(odd))).toMatchObject({ status: 424, code: "FailedDependency" });
	});
});

describe("blobs and filesystems", () => {
	it("are put, asked for, read in part", async () => {
		const bytes = Buffer.from("a blob over HTTP");
		const put = await client.putBlob(bytes);
		expect(put).toEqual({ content_hash_b3: hashOf(bytes), uncompressed_len: bytes.length, was_new: true });
		expect((await client.putBlob(bytes)).was_new).toBe(false);
		expect(await client.hasBlob(put.content_hash_b3)).toBe(true);
		expect(await client.hasBlob(hashOf(Buffer.from("nobody has this")))).toBe(false);
		expect(Buffer.from(await client.blob(put.content_hash_b3, { verify: true })).equals(bytes)).toBe(true);
		const part = await client.blob(put.content_hash_b3, { range: { start: 2, end: 6 } });
		expect(Buffer.from(part).toString()).toBe("blob");
		expect((await client.putBlob(new Uint8Array(0))).uncompressed_len).toBe(0);
	});

	it("of a turn are walked by path", async () => {
		const file = await client.putBlob(Buffer.from("file content"));
		const target = await client.putBlob(Buffer.from("a file"));
		const entry = (name: string, kind: number, size: number, hash: string) => ({
			1: name,
			2: kind,
			3: 0o644,
			4: size,
			5: Buffer.from(hash, "hex"),
		});
		const tree = treeOf([entry("a file", 0, 12, file.content_hash_b3), entry("link", 2, 6, target.content_hash_b3)]);
		const inner = await client.putBlob(tree);
		const root = await client.putBlob(treeOf([entry("dir", 1, 0, inner.content_hash_b3)]));
		const { context_id: id } = await client.createContext();
		const ack = await client.append(id, { ...TYPE, data: FULL, fs_root_hash: root.content_hash_b3 });
		expect((await client.fsRoot(ack.turn_id)).entries).toMatchObject([{ name: "dir", kind: "directory" }]);
		expect(await client.fs(ack.turn_id, "dir")).toMatchObject({
			path: "dir",
			entries: [{ name: "a file" }, { name: "link" }],
		});
		expect(await client.fs(ack.turn_id, "dir/link")).toMatchObject({ kind: "symlink", target: "a file" });
		expect(Buffer.from((await client.fs(ack.turn_id, "dir/a file")) as Uint8Array).toString()).toBe("file content");
		expect(await refusal(client.fs(ack.turn_id, "dir/none"))).toMatchObject({ status: 404 });
	});
});

/** A filesystem tree's msgpack: an array of tagged entries. */
function treeOf(entries: readonly Parameters<typeof encodeTagged>[0][]): Uint8Array {
	return Buffer.concat([Buffer.of(0x90 | entries.length), ...entries.map(encodeTagged)]);
}

describe("the registry", () => {
	it("publishes once and refuses illegal evolution", async () => {
		expect(await client.putBundle(BUNDLE)).toBe(false);
		expect(await refusal(client.putBundle({ ...BUNDLE, enums: {} }))).toMatchObject({ status: 409 });
		expect(await client.bundle(BUNDLE.bundle_id)).toEqual(BUNDLE);
		expect((await client.types()).types).toContainEqual({
			type_id: "test.Message",
			latest_version: 2,
			versions: [1, 2],
		});
	});

	it("is asked for a descriptor once, and then only whether it changed", async () => {
		const statuses: number[] = [];
		const counting = new GatewayClient({
			baseUrl: server.url,
			token: await server.token(),
			fetch: async (input, init) => {
				const response = await fetch(input, init);
				statuses.push(response.status);
				return response;
			},
		});
		const first = await counting.typeDescriptor("test.Message", 1);
		expect(first).toMatchObject({
			bundle_id: BUNDLE.bundle_id,
			fields: { 2: { name: "text" } },
			enums: { "test.Role": { 2: "user" } },
		});
		expect(await counting.typeDescriptor("test.Message", 1)).toBe(first);
		expect(statuses).toEqual([200, 304]);
		expect(await refusal(counting.typeDescriptor("test.Message", 9))).toMatchObject({ status: 404 });
	});

	it("shows the shared vectors as every client reads them", async () => {
		await client.putBundle(vectors<Bundle>("payloads/vectors-bundle.json"));
		const { context_id: id } = await client.createContext();
		const all =
			vectors<{ type_id: string; version: number; msgpack: string; typed: object }[]>("payloads/vectors.json");
		for (const { type_id, version, msgpack } of all) {
			const payload_b64 = Buffer.from(msgpack, "hex").toString("base64");
			await client.append(id, { type_id, type_version: version, payload_b64 });
		}
		const { turns } = await client.turns(id, { limit: 1000 });
		expect(turns.map((turn) => turn.data)).toEqual(all.map((vector) => vector.typed));
	});
});

describe("events", () => {
	async function take(count: number, options: Parameters<GatewayClient["events"]>[0]): Promise<StoreEvent[]> {
		const seen: StoreEvent[] = [];
		for await (const event of client.events(options)) {
			seen.push(event);
			if (seen.length === count) break;
		}
		return seen;
	}

	it("replay a context from the start, and resume after any of them", async () => {
		const { id, turns } = await contextWith(3);
		const all = await take(4, { contextId: id, after: "0" });
		expect(all.map((event) => event.kind)).toEqual(["context.created", ...turns.map(() => "turn.appended")]);
		const appended = all.flatMap((event) => (event.kind === "turn.appended" ? [event.data.turn_id] : []));
		expect(appended).toEqual(turns);
		expect(await take(2, { contextId: id, after: all[1]?.position ?? "" })).toEqual(all.slice(2));
	});

	it("of the whole store give only what is new", async () => {
		const { id } = await contextWith(1);
		let appending: Promise<unknown> | null = null;
		const onOpen = () => {
			appending = client.append(id, { ...TYPE, data: FULL });
		};
		const [event] = await take(1, { onOpen });
		expect(event).toMatchObject({ kind: "turn.appended", data: { context_id: id, depth: 1 } });
		await appending;
	});

	it("beyond the end are refused", async () => {
		expect(await refusal(take(1, { after: "999999999" }))).toMatchObject({ status: 409 });
	});
});

describe("the server", () => {
	it("tells how it is", async () => {
		expect(await client.health()).toMatchObject({ status: "ok" });
		expect(await client.stats()).toMatchObject({ tcp_addr: server.address, poisoned: false });
		expect(await client.metrics()).toContain("turnkeep");
		expect(await client.openapi()).toHaveProperty("paths");
		const pieces: Uint8Array[] = [];
		for await (const piece of await client.export()) pieces.push(piece);
		expect(Buffer.concat(pieces).length).toBeGreaterThan(0);
	});

	it("wants its token", async () => {
		const stranger = new GatewayClient({ baseUrl: server.url });
		expect(await stranger.health()).toMatchObject({ status: "ok" });
		expect(await refusal(stranger.stats())).toMatchObject({ status: 401, code: "Unauthorized" });
		expect(await refusal(stranger.turn(turnId(1)))).toMatchObject({ status: 401 });
	});
});

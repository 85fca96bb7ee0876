/** What the client does when the server dies, is slow, sends half of something, too much, or the wrong thing. */

import { EventEmitter, getEventListeners } from "node:events";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { hashOf } from "../../src/core/blob-hash.js";
import { Connection } from "../../src/node/connection.js";
import {
	type Client,
	type ClientOptions,
	type ContextId,
	connect,
	type Delivery,
	encodeTagged,
	TaggedMap,
} from "../../src/node/index.js";
import type { Frame } from "../../src/wire/frame.js";
import { MsgType } from "../../src/wire/frame.js";
import * as requests from "../../src/wire/requests.js";
import * as responses from "../../src/wire/responses.js";
import type { Turn } from "../../src/wire/turns.js";
import { type FakePeer, FakeServer, frameOf } from "../fake-server.js";
import { TestServer } from "../server.js";

const TYPE = { id: "test.Message", version: 1 };
const CONTEXT = 7n as ContextId;
const QUICK = { attemptsMax: 5, firstMs: 1, longestMs: 5 };
const PATIENT = { attemptsMax: 1000, firstMs: 5, longestMs: 100 };
const HEAD = { contextId: CONTEXT, headTurnId: null, headDepth: 0 };

/** A promise with its ends outside: Node 20 has none of its own. */
function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
	let resolve: (value: T) => void = () => undefined;
	const promise = new Promise<T>((settle) => {
		resolve = settle;
	});
	return { promise, resolve };
}

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

async function fake(
	onRequest: (peer: FakePeer, frame: Frame) => void,
	options?: { greets: boolean },
): Promise<FakeServer> {
	const server = await FakeServer.start(onRequest, options);
	ends.push(() => server.stop());
	return server;
}

async function client(address: string, options: ClientOptions = {}): Promise<Client> {
	const connected = await connect(address, { retry: QUICK, ...options });
	ends.push(() => connected.close());
	return connected;
}

function append(key?: string) {
	return { contextId: CONTEXT, type: TYPE, payload: encodeTagged({ 1: "x" }), ...(key === undefined ? {} : { key }) };
}

function ackOf(request: requests.AppendTurn) {
	return { contextId: request.contextId, turnId: 1n as Turn["id"], depth: 0, hash: request.turn.hash };
}

describe("a server that is killed and restarted in mid-stream", () => {
	it("loses nothing and doubles nothing that has an idempotency key, and a subscriber sees each append once", async () => {
		const server = await TestServer.start();
		ends.push(() => server.stop());
		const writer = await client(server.address, { retry: PATIENT });
		const reader = await client(server.address, { retry: PATIENT });
		const { contextId } = await writer.createContext();
		const count = 1500;
		const seen = follow(reader, contextId, count);
		let acked = 0;
		let crash: Promise<void> | null = null;
		const crashAndReturn = async () => {
			await server.kill();
			await server.restart();
		};
		const write = async (number: number) => {
			await writer.append({ contextId, type: TYPE, payload: encodeTagged({ 1: number }), key: `key-${number}` });
			acked += 1;
			if (acked % 400 === 0 && acked < 1300) crash = (crash ?? Promise.resolve()).then(crashAndReturn);
		};
		const numbers = Array.from({ length: count }, (_, number) => number);
		const workers = Array.from({ length: 32 }, async () => {
			for (let next = numbers.pop(); next !== undefined; next = numbers.pop()) await write(next);
		});
		await Promise.all(workers);
		await crash;
		const kept: number[] = [];
		for await (const turn of reader.history(contextId)) kept.push(TaggedMap.decode(turn.payload).get(1) as number);
		const everything = Array.from({ length: count }, (_, number) => number);
		expect(kept.toSorted((a, b) => a - b)).toEqual(everything);
		expect((await seen).toReversed()).toEqual(kept);
	}, 180_000);
});

/** The numbers that a subscription gives, until it gave so many. */
async function follow(reader: Client, contextId: ContextId, count: number): Promise<number[]> {
	const seen: number[] = [];
	for await (const { turn } of reader.subscribe({ contextId, after: 0n })) {
		seen.push(TaggedMap.decode(turn.payload).get(1) as number);
		if (seen.length === count) break;
	}
	return seen;
}

describe("a lost connection", () => {
	it("is dialled again, and only what is safe is repeated", async () => {
		const server = await fake((peer, frame) => {
			const request = requests.readRequest(frame);
			if (peer.number === 0) peer.socket.destroy();
			else peer.answer(frame, responses.turnAck, ackOf(request as requests.AppendTurn));
		});
		const connected = await client(server.address);
		const [keyed, plain] = await Promise.allSettled([connected.append(append("k")), connected.append(append())]);
		expect(keyed).toMatchObject({ status: "fulfilled", value: { turnId: 1n } });
		expect(plain).toMatchObject({ status: "rejected", reason: { name: "OutcomeUnknownError", isRetryable: false } });
		expect(server.connections).toBe(2);
	});

	it("that nobody can dial again ends in an error after the last try", async () => {
		const server = await fake((peer) => peer.socket.destroy());
		const connected = await client(server.address);
		await expect(connected.head(CONTEXT)).rejects.toMatchObject({ name: "LostError", isRetryable: true });
		expect(server.connections).toBe(1 + QUICK.attemptsMax);
	});

	it("within half a frame is a loss like any other", async () => {
		const server = await fake((peer, frame) => {
			const whole = frameOf({ msgType: frame.msgType, flags: 0, reqId: frame.reqId }, responses.contextHead, HEAD);
			if (peer.number === 0) peer.socket.end(whole.subarray(0, 20));
			else peer.socket.write(whole);
		});
		expect(await (await client(server.address)).head(CONTEXT)).toEqual(HEAD);
	});
});

describe("a slow server", () => {
	it("may send an answer byte by byte", async () => {
		const server = await fake((peer, frame) => {
			const whole = frameOf({ msgType: frame.msgType, flags: 0, reqId: frame.reqId }, responses.contextHead, HEAD);
			const drip = (at: number) => {
				if (at < whole.length) peer.socket.write(whole.subarray(at, at + 1), () => setImmediate(drip, at + 1));
			};
			drip(0);
		});
		expect(await (await client(server.address)).head(CONTEXT)).toEqual(HEAD);
	});

	it("that says nothing is given up", async () => {
		const server = await fake(() => undefined);
		const connected = await client(server.address, { answerTimeoutMs: 40, retry: { ...QUICK, attemptsMax: 1 } });
		await expect(connected.head(CONTEXT)).rejects.toMatchObject({ name: "LostError", reason: "silent" });
		expect(server.connections).toBe(2);
	});

	it("that takes a large request slowly is not given up while it takes it", () => {
		vi.useFakeTimers();
		ends.push(() => vi.useRealTimers());
		const taken: (() => void)[] = [];
		const socket = Object.assign(new EventEmitter(), {
			setNoDelay: () => undefined,
			destroy: () => undefined,
			write: (_bytes: Buffer, onTaken: () => void) => taken.push(onTaken),
		});
		const bounds = { requestBytesMax: 64 << 20, frameBytesMax: 1000, answerTimeoutMs: 1000 };
		const connection = new Connection(() => socket as unknown as Socket, bounds);
		const nobody = { isReply: true, onFrame: () => undefined, onLost: () => undefined };
		const bytes = new Uint8Array(2 << 20);
		connection.send(requests.putBlob, { hash: hashOf(bytes), bytes }, nobody);
		for (let parts = 0; parts < 8; parts += 1) {
			vi.advanceTimersByTime(900);
			expect(connection.lost).toBeNull();
			taken.shift()?.();
		}
		vi.advanceTimersByTime(2000);
		expect(connection.lost).toMatchObject({ reason: "silent" });
	});

	it("that does not greet is given up", async () => {
		const server = await fake(() => undefined, { greets: false });
		await expect(connect(server.address, { connectTimeoutMs: 40 })).rejects.toMatchObject({ name: "ConnectError" });
		await server.everyoneLeft();
	});

	it("answers in any order, and each caller gets its own answer", async () => {
		const waiting: [FakePeer, Frame, ContextId][] = [];
		const server = await fake((peer, frame) => {
			waiting.push([peer, frame, requests.readRequest(frame) as ContextId]);
			if (waiting.length < 50) return;
			for (const [to, asked, contextId] of waiting.splice(0).reverse()) {
				to.answer(asked, responses.contextHead, { ...HEAD, contextId });
			}
		});
		const connected = await client(server.address);
		const ids = Array.from({ length: 50 }, (_, index) => BigInt(index + 1) as ContextId);
		const heads = await Promise.all(ids.map((id) => connected.head(id)));
		expect(heads.map((head) => head.contextId)).toEqual(ids);
	});
});

describe("ERROR frames", () => {
	it.each([429, 503, 507])("%i is tried again", async (status) => {
		let asked = 0;
		const server = await fake((peer, frame) => {
			asked += 1;
			if (asked < 3) peer.refuse(frame, status, "Later");
			else peer.answer(frame, responses.contextHead, HEAD);
		});
		expect(await (await client(server.address)).head(CONTEXT)).toEqual(HEAD);
		expect(asked).toBe(3);
	});

	it.each([400, 401, 404, 409, 412, 413, 422, 500])("%i is not", async (status) => {
		let asked = 0;
		const server = await fake((peer, frame) => {
			asked += 1;
			peer.refuse(frame, status, "Never", { why: "because" });
		});
		const asking = (await client(server.address)).head(CONTEXT);
		await expect(asking).rejects.toMatchObject({ status, code: "Never", details: { why: "because" } });
		expect(asked).toBe(1);
	});

	it("503 leaves the outcome of a write without a key unknown", async () => {
		const server = await fake((peer, frame) => peer.refuse(frame, 503, "Unavailable"));
		const connected = await client(server.address);
		await expect(connected.append(append())).rejects.toMatchObject({
			name: "OutcomeUnknownError",
			cause: { status: 503 },
		});
	});

	it("may hold plain text, or nothing that is JSON of ours", async () => {
		const details = ["plain text", "[1]", '{"code":1}', "{}"];
		const server = await fake((peer, frame) => {
			const header = { msgType: MsgType.Error, flags: 0, reqId: frame.reqId };
			peer.socket.write(frameOf(header, responses.failure, { status: 500, detail: details[0] ?? "" }));
		});
		const connected = await client(server.address);
		for (const detail of [...details]) {
			await expect(connected.head(CONTEXT)).rejects.toMatchObject({ status: 500, code: "Unknown", message: detail });
			details.shift();
		}
	});

	it("with request id 0 end the connection and say why", async () => {
		const server = await fake((peer) => peer.refuse({ reqId: 0n }, 503, "Unavailable"));
		const connected = await client(server.address, { retry: { ...QUICK, attemptsMax: 0 } });
		await expect(connected.head(CONTEXT)).rejects.toMatchObject({ reason: "refused", cause: { status: 503 } });
	});
});

describe("a request", () => {
	it("about more blobs than fit is split, and answered in its order", async () => {
		const sizes: number[] = [];
		const server = await fake((peer, frame) => {
			const hashes = requests.readRequest(frame) as string[];
			sizes.push(hashes.length);
			const present = hashes.map((hash) => hash === hashOf(Buffer.from("there")));
			peer.answer(frame, responses.blobsPresent, present);
		});
		const asked = Array.from({ length: 65_536 + 2 }, () => hashOf(Buffer.from("nowhere")));
		asked[65_536] = hashOf(Buffer.from("there"));
		const present = await (await client(server.address)).hasBlobs(asked);
		expect(sizes).toEqual([65_536, 2]);
		expect(present).toHaveLength(asked.length);
		expect(present.indexOf(true)).toBe(65_536);
		expect(present.lastIndexOf(true)).toBe(65_536);
	});

	it("about blobs that is answered for fewer is refused", async () => {
		const server = await fake((peer, frame) => peer.answer(frame, responses.blobsPresent, [true]));
		const asking = (await client(server.address)).hasBlobs([hashOf(Buffer.of(1)), hashOf(Buffer.of(2))]);
		await expect(asking).rejects.toMatchObject({ name: "ProtocolError", fault: "wrong_answer" });
	});

	it("with half a surrogate pair in a text is rejected, and nothing of it is sent", async () => {
		const seen: number[] = [];
		const server = await fake((peer, frame) => {
			seen.push(frame.msgType);
			peer.answer(frame, responses.contextHead, HEAD);
		});
		const connected = await client(server.address);
		const wrong = { contextId: CONTEXT, payload: Buffer.of(0x80) };
		const type = { id: "\ud800", version: 1 };
		for (const asking of [
			connected.append({ ...wrong, type }),
			connected.append({ ...wrong, type: TYPE, key: "\udc00" }),
			connected.appendBatch({ contextId: CONTEXT, turns: [{ ...wrong, type }] }),
			connected.createContext({ key: "key \ud800" }),
		]) {
			await expect(asking).rejects.toThrow(/half a surrogate pair/);
		}
		expect(await connected.head(CONTEXT)).toEqual(HEAD);
		expect(seen).toEqual([MsgType.GetHead]);
	});
});

describe("a server that does not keep to the protocol", () => {
	const cases: [string, (peer: FakePeer, frame: Frame) => void, object][] = [
		[
			"announces a frame over the bound",
			(peer, frame) => peer.socket.write(header(1 << 20, frame.msgType, frame.reqId)),
			{ name: "ProtocolError", fault: "frame_too_long", isRetryable: false },
		],
		[
			"announces a frame over the bound to somebody else",
			(peer) => peer.socket.write(header(1 << 20, MsgType.GetHead, 99n)),
			{ name: "LostError", reason: "frame_too_long", isRetryable: true },
		],
		[
			"sets a flag that no answer has",
			(peer, frame) => peer.answer(frame, responses.contextHead, HEAD, 0x80),
			{ fault: "undefined_flags" },
		],
		[
			"answers another message",
			(peer, frame) => peer.answer({ reqId: frame.reqId, msgType: MsgType.GetBlob }, responses.blob, Buffer.of(1)),
			{ fault: "wrong_answer" },
		],
		[
			"cuts its answer",
			(peer, frame) => peer.socket.write(header(0, frame.msgType, frame.reqId)),
			{ fault: "truncated" },
		],
		[
			"names context 0",
			(peer, frame) => peer.answer(frame, responses.contextHead, { ...HEAD, contextId: 0n as ContextId }),
			{ fault: "zero_id" },
		],
	];

	it.each(cases)("and %s", async (_name, misbehave, expected) => {
		const server = await fake(misbehave);
		const connected = await client(server.address, { frameBytesMax: 1000, retry: { ...QUICK, attemptsMax: 0 } });
		await expect(connected.head(CONTEXT)).rejects.toMatchObject(expected);
	});

	it("and speaks another version is refused", async () => {
		const server = await fake((peer, frame) => peer.answer(frame, responses.session, { sessionId: 1n, version: 2 }), {
			greets: false,
		});
		await expect(connect(server.address)).rejects.toMatchObject({ name: "ProtocolError", fault: "bad_value" });
		await server.everyoneLeft();
	});

	it("and gives a history that does not lead back is refused", async () => {
		const turnOf = (id: bigint) => ({ ...turnAt(id).turn, parentId: (id - 1n) as Turn["id"] });
		const server = await fake((peer, frame) => peer.answer(frame, responses.turnPage(false), [turnOf(5n), turnOf(6n)]));
		const seen: bigint[] = [];
		const reading = async () => {
			for await (const { id } of (await client(server.address)).history(CONTEXT)) seen.push(id);
		};
		await expect(reading()).rejects.toMatchObject({ name: "ProtocolError", fault: "bad_value" });
		expect(seen).toEqual([6n, 5n]);
	});

	it("and speaks to nobody is ignored", async () => {
		const server = await fake((peer, frame) => {
			peer.answer({ msgType: frame.msgType, reqId: 2n ** 64n - 1n }, responses.contextHead, HEAD);
			peer.answer(frame, responses.contextHead, HEAD);
			peer.answer(frame, responses.contextHead, HEAD);
		});
		const connected = await client(server.address);
		expect(await connected.head(CONTEXT)).toEqual(HEAD);
		expect(await connected.head(CONTEXT)).toEqual(HEAD);
	});

	it("and sends bytes with another hash is found out when reads are verified", async () => {
		const server = await fake((peer, frame) => peer.answer(frame, responses.blob, Buffer.from("other")));
		const hash = hashOf(Buffer.from("asked"));
		const connected = await client(server.address, { verifyReads: true });
		await expect(connected.blob(hash)).rejects.toMatchObject({ name: "HashMismatchError", expected: hash });
	});
});

function header(bytes: number, msgType: number, reqId: bigint): Buffer {
	const head = Buffer.alloc(16);
	head.writeUInt32LE(bytes, 0);
	head.writeUInt16LE(msgType, 4);
	head.writeBigUInt64LE(reqId, 8);
	return head;
}

describe("an abort", () => {
	const reason = new Error("enough");

	it("before the call sends nothing", async () => {
		const server = await fake(() => {
			throw new Error("something was sent");
		});
		const connected = await client(server.address);
		await expect(connected.head(CONTEXT, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
	});

	it("while the answer is awaited leaves neither listener nor waiter, and the connection goes on", async () => {
		const controller = new AbortController();
		let held: [FakePeer, Frame] | null = null;
		const server = await fake((peer, frame) => {
			if (held === null) {
				held = [peer, frame];
				controller.abort(reason);
				return;
			}
			held[0].answer(held[1], responses.contextHead, HEAD);
			peer.answer(frame, responses.contextHead, HEAD);
		});
		const connected = await client(server.address, { inFlightMax: 2 });
		await expect(connected.head(CONTEXT, { signal: controller.signal })).rejects.toBe(reason);
		expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
		expect(await connected.head(CONTEXT)).toEqual(HEAD);
		connected.close();
		await server.everyoneLeft();
	});

	it("of what was sent leaves its room taken until it is answered, so that aborting lifts no bound", async () => {
		const controller = new AbortController();
		const asked = deferred<[FakePeer, Frame]>();
		const server = await fake((peer, frame) => {
			if (controller.signal.aborted) return peer.answer(frame, responses.contextHead, HEAD);
			asked.resolve([peer, frame]);
		});
		const connected = await client(server.address, { inFlightMax: 1 });
		const first = connected.head(CONTEXT, { signal: controller.signal });
		const [peer, frame] = await asked.promise;
		controller.abort(reason);
		await expect(first).rejects.toBe(reason);
		expect(connected.gate.tryEnter(0)).toBe(false);
		peer.answer(frame, responses.contextHead, HEAD);
		expect(await connected.head(CONTEXT)).toEqual(HEAD);
	});

	it("while it waits for room, or between tries, leaves no listener", async () => {
		const controller = new AbortController();
		const server = await fake(() => undefined);
		const connected = await client(server.address, { inFlightMax: 1 });
		const first = connected.head(CONTEXT).catch((error: unknown) => error);
		const second = connected.head(CONTEXT, { signal: controller.signal });
		controller.abort(reason);
		await expect(second).rejects.toBe(reason);
		expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
		connected.close();
		expect(await first).toMatchObject({ name: "LostError", reason: "closed" });
		await expect(connected.head(CONTEXT)).rejects.toMatchObject({ reason: "closed" });
	});

	it("of a settled call does nothing", async () => {
		const controller = new AbortController();
		const server = await fake((peer, frame) => peer.answer(frame, responses.contextHead, HEAD));
		const connected = await client(server.address);
		await connected.head(CONTEXT, { signal: controller.signal });
		expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
		controller.abort(reason);
		expect(await connected.head(CONTEXT)).toEqual(HEAD);
	});

	it("of a connect leaves no socket", async () => {
		const controller = new AbortController();
		const server = await fake(() => controller.abort(reason), { greets: false });
		await expect(connect(server.address, { signal: controller.signal })).rejects.toBe(reason);
		expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
		await server.everyoneLeft();
	});

	it("of a subscription cancels it and leaves no listener", async () => {
		const controller = new AbortController();
		const cancelled = deferred<bigint>();
		let subscription = 0n;
		const server = await fake((peer, frame) => {
			if (frame.msgType === MsgType.Cancel) return cancelled.resolve(requests.readRequest(frame) as bigint);
			subscription = frame.reqId;
			peer.answer(frame, responses.empty, undefined, responses.FLAG_CAUGHT_UP);
			setImmediate(() => controller.abort(reason));
		});
		const connected = await client(server.address);
		const following = connected.subscribe({ after: 0n, signal: controller.signal });
		await expect(following.next()).rejects.toBe(reason);
		expect(await cancelled.promise).toBe(subscription);
		expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
	});
});

/** An append at a position; its turn has the same number. */
function turnAt(position: bigint): Delivery {
	return {
		position,
		contextId: CONTEXT,
		turn: {
			id: position as Turn["id"],
			parentId: null,
			depth: 0,
			type: TYPE,
			encoding: 1,
			compression: "none",
			uncompressedLength: 1,
			hash: hashOf(Buffer.of(0x80)),
			payload: Buffer.of(0x80),
		},
	};
}

describe("a subscription", () => {
	const codec = responses.delivery(false);

	/** A feed of ten appends that behaves badly at first: gives what was asked for, from its position on. */
	async function positionsFrom(
		misbehave: (peer: FakePeer, frame: Frame, asked: number) => boolean,
		options: ClientOptions = {},
	): Promise<bigint[]> {
		let asked = 0;
		const server = await fake((peer, frame) => {
			if (frame.msgType === MsgType.Cancel) return peer.answer(frame, responses.empty, undefined);
			const { after } = requests.readRequest(frame) as requests.Subscribe;
			if (after !== null && after > 10n) return peer.refuse(frame, 409, "Conflict", { last_position: "4" });
			asked += 1;
			peer.answer(frame, responses.empty, undefined);
			for (let position = (after ?? 0n) + 1n; position <= 10n; position += 1n) {
				peer.answer(frame, codec, turnAt(position), position === 10n ? responses.FLAG_CAUGHT_UP : 0);
				if (position % 3n === 0n && misbehave(peer, frame, asked)) return;
			}
		});
		const connected = await client(server.address, options);
		const seen: bigint[] = [];
		for await (const { position } of connected.subscribe({ after: 0n })) {
			seen.push(position);
			if (position === 10n) break;
		}
		return seen;
	}

	const all = Array.from({ length: 10 }, (_, index) => BigInt(index + 1));

	it("resumes after a lost connection", async () => {
		const hangUp = (peer: FakePeer, _frame: Frame, asked: number) => {
			if (asked < 3) peer.socket.end();
			return asked < 3;
		};
		expect(await positionsFrom(hangUp)).toEqual(all);
	});

	it("resumes where the server says when it fell behind", async () => {
		const behind = (peer: FakePeer, frame: Frame, asked: number) => {
			if (asked === 1) peer.refuse(frame, 429, "TooManyRequests", { resume_after: "3" });
			return asked === 1;
		};
		expect(await positionsFrom(behind)).toEqual(all);
	});

	it("resumes when its reader was too slow for its queue", async () => {
		expect(await positionsFrom(() => false, { subscriptionEventsMax: 2 })).toEqual(all);
		expect(await positionsFrom(() => false, { subscriptionBytesMax: 1 })).toEqual(all);
	});

	it("to what is new learns where the feed ends before it begins", async () => {
		const server = await fake((peer, frame) => {
			const { after } = requests.readRequest(frame) as requests.Subscribe;
			if (after !== null && after > 10n) return peer.refuse(frame, 409, "Conflict", { last_position: "4" });
			peer.answer(frame, responses.empty, undefined, responses.FLAG_CAUGHT_UP);
			peer.answer(frame, codec, turnAt((after ?? 0n) + 1n));
		});
		const following = (await client(server.address)).subscribe();
		expect((await following.next()).value?.position).toBe(5n);
		await following.return();
	});

	it("that nobody accepts is given up", async () => {
		const server = await fake(() => undefined);
		const connected = await client(server.address, { answerTimeoutMs: 40, retry: { ...QUICK, attemptsMax: 1 } });
		await expect(connected.subscribe({ after: 0n }).next()).rejects.toMatchObject({ reason: "silent" });
		expect(server.connections).toBe(2);
	});

	it("without events outlives any number of losses, which count only in a row", async () => {
		const losses = 20;
		const server = await fake((peer, frame) => {
			peer.answer(frame, responses.empty, undefined, responses.FLAG_CAUGHT_UP);
			if (peer.number < losses) peer.socket.end();
			else peer.answer(frame, codec, turnAt(1n));
		});
		const connected = await client(server.address, { retry: { attemptsMax: 2, firstMs: 0, longestMs: 0 } });
		const following = connected.subscribe({ after: 0n });
		expect((await following.next()).value?.position).toBe(1n);
		await following.return();
	});

	it("refuses positions that do not grow", async () => {
		const server = await fake((peer, frame) => {
			if (frame.msgType === MsgType.Cancel) return;
			peer.answer(frame, responses.empty, undefined);
			for (const position of [5n, 5n]) peer.answer(frame, codec, turnAt(position));
		});
		const following = (await client(server.address)).subscribe({ after: 0n });
		expect((await following.next()).value?.position).toBe(5n);
		await expect(following.next()).rejects.toMatchObject({ name: "ProtocolError", fault: "bad_value" });
	});

	it("ends while its next event is awaited", async () => {
		const accepted = deferred<void>();
		const server = await fake((peer, frame) => {
			peer.answer(frame, responses.empty, undefined);
			accepted.resolve();
		});
		const following = (await client(server.address)).subscribe({ after: 0n });
		const next = following.next();
		await accepted.promise;
		await following.return();
		expect(await next).toEqual({ done: true, value: undefined });
	});

	it("goes on behind an append that the server cannot deliver", async () => {
		const server = await fake((peer, frame) => {
			if (frame.msgType === MsgType.Cancel) return;
			const { after } = requests.readRequest(frame) as requests.Subscribe;
			peer.answer(frame, responses.empty, undefined);
			if (after === 0n) peer.refuse(frame, 500, "DecodeError", { resume_after: "1" });
			else peer.answer(frame, codec, turnAt(2n));
		});
		const following = (await client(server.address)).subscribe({ after: 0n });
		await expect(following.next()).rejects.toMatchObject({ status: 500, code: "DecodeError" });
		expect((await following.next()).value?.position).toBe(2n);
		await following.return();
	});
});

describe("arguments", () => {
	it("that are undefined are as good as left out", async () => {
		const server = await fake((peer, frame) => peer.answer(frame, responses.contextHead, HEAD));
		const nothing = { tag: undefined, connectTimeoutMs: undefined, answerTimeoutMs: undefined, inFlightMax: undefined };
		const connected = await connect(server.address, nothing as object);
		ends.push(() => connected.close());
		expect(await connected.head(CONTEXT)).toEqual(HEAD);
	});

	it("that are no bundle are refused by a rejection", async () => {
		const server = await fake(() => undefined);
		await expect((await client(server.address)).putBundle("no JSON")).rejects.toThrow(TypeError);
	});
});

describe("what is in flight", () => {
	it("is bounded, and nobody overtakes the line", async () => {
		const order: bigint[] = [];
		let open = 0;
		let most = 0;
		const server = await fake((peer, frame) => {
			order.push(requests.readRequest(frame) as bigint);
			open += 1;
			most = Math.max(most, open);
			setImmediate(() => {
				open -= 1;
				peer.answer(frame, responses.contextHead, HEAD);
			});
		});
		const connected = await client(server.address, { inFlightMax: 4 });
		const ids = Array.from({ length: 100 }, (_, index) => BigInt(index + 1) as ContextId);
		await Promise.all(ids.map((id) => connected.head(id)));
		expect(order).toEqual(ids);
		expect(most).toBeLessThanOrEqual(4);
	});

	it("of a thousand callers shares one connection and few writes", async () => {
		let pieces = 0;
		const server = await fake((peer, frame) => {
			if (peer.socket.listenerCount("data") === 1) peer.socket.on("data", () => (pieces += 1));
			peer.answer(frame, responses.contextHead, HEAD);
		});
		const connected = await client(server.address);
		await Promise.all(Array.from({ length: 1000 }, () => connected.head(CONTEXT)));
		expect(server.connections).toBe(1);
		expect(pieces).toBeLessThan(100);
	});

	it("ends when the client is closed", async () => {
		const asked = deferred<void>();
		const server = await fake(() => asked.resolve());
		const connected = await client(server.address);
		const waiting = connected.append(append("k")).catch((error: unknown) => error);
		await asked.promise;
		connected.close();
		expect(await waiting).toMatchObject({ name: "LostError", reason: "closed", isRetryable: false });
		await server.everyoneLeft();
	});
});

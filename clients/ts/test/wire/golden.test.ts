/** The golden frames: encode equal to the byte, decode equal by value, everything malformed refused. */

import { describe, expect, it } from "vitest";
import type { BlobHash } from "../../src/core/blob-hash.js";
import { ProtocolError } from "../../src/core/errors.js";
import { readAnswer } from "../../src/node/answer.js";
import type { ContextId, TurnId } from "../../src/node/ids.js";
import { ByteReader, ByteWriter } from "../../src/wire/bytes.js";
import { type Frame, FrameGatherer, HEADER_BYTES, MsgType, writeFrame } from "../../src/wire/frame.js";
import * as requests from "../../src/wire/requests.js";
import * as responses from "../../src/wire/responses.js";
import type { Turn, TurnContent } from "../../src/wire/turns.js";
import { push } from "../fake-server.js";
import { fromHex, vectors } from "../testdata.js";

const FRAME_BYTES_MAX = 64 << 20;

// biome-ignore lint/suspicious/noExplicitAny: the fields of a vector depend on its message
type Fields = any;

interface Golden {
	readonly name: string;
	readonly msg_type: number;
	readonly flags: number;
	readonly req_id: string;
	readonly request_flags?: number;
	readonly fields: Fields;
	readonly hex: string;
}

const context = (text: string) => BigInt(text) as ContextId;
const turn = (text: string) => BigInt(text) as TurnId;
const optionalTurn = (text: string) => (text === "0" ? null : turn(text));
const bytes = (hex: string) => Uint8Array.from(fromHex(hex));
const hash = (hex: string) => hex as BlobHash;

function content(fields: Fields): TurnContent {
	return {
		type: { id: fields.declared_type_id, version: fields.declared_type_version },
		encoding: fields.encoding,
		compression: fields.compression === 1 ? "zstd" : "none",
		uncompressedLength: fields.uncompressed_len,
		hash: hash(fields.content_hash_b3_256 ?? fields.content_hash),
		payload: bytes(fields.payload_bytes),
	};
}

function item(fields: Fields): Turn {
	const plain = {
		id: turn(fields.turn_id),
		parentId: optionalTurn(fields.parent_turn_id),
		depth: fields.depth,
		...content(fields),
	};
	if (fields.created_at === undefined) return plain;
	const root = /^0+$/.test(fields.fs_root_hash) ? null : hash(fields.fs_root_hash);
	return { ...plain, createdAt: new Date(Number(fields.created_at)), fsRoot: root };
}

function expectedHead(fields: Fields) {
	return fields.expected_head_turn_id === undefined ? {} : { expectedHead: optionalTurn(fields.expected_head_turn_id) };
}

function itemOptions({ fields, flags }: Golden) {
	return { payload: fields.include_payload === 1, stored: (flags & 2) !== 0, details: (flags & 4) !== 0 };
}

function read(golden: Golden) {
	return { contextId: context(golden.fields.context_id), limit: golden.fields.limit, ...itemOptions(golden) };
}

function create({ fields }: Golden) {
	return { base: optionalTurn(fields.base_turn_id), ...(fields.key === undefined ? {} : { key: bytes(fields.key) }) };
}

function target({ fields }: Golden) {
	return {
		contextId: context(fields.context_id),
		parentId: optionalTurn(fields.parent_turn_id),
		...expectedHead(fields),
	};
}

/** How each request's fields are a value of this client. */
const REQUESTS: Record<number, { codec: requests.RequestCodec<Fields>; value: (golden: Golden) => unknown }> = {
	[MsgType.Hello]: {
		codec: requests.hello,
		value: ({ fields }) =>
			fields.version === undefined ? null : { version: fields.version, tag: fields.tag, meta: fields.meta_json },
	},
	[MsgType.CtxCreate]: { codec: requests.createContext, value: create },
	[MsgType.CtxFork]: { codec: requests.forkContext, value: create },
	[MsgType.GetHead]: { codec: requests.getHead, value: ({ fields }) => context(fields.context_id) },
	[MsgType.AppendTurn]: {
		codec: requests.appendTurn,
		value: (golden) => ({
			...target(golden),
			turn: content(golden.fields),
			key: bytes(golden.fields.idempotency_key),
			...(golden.fields.fs_root_hash === undefined ? {} : { fsRoot: hash(golden.fields.fs_root_hash) }),
		}),
	},
	[MsgType.GetLast]: { codec: requests.getLast, value: read },
	[MsgType.GetBefore]: {
		codec: requests.getBefore,
		value: (golden) => ({ ...read(golden), before: optionalTurn(golden.fields.before_turn_id) }),
	},
	[MsgType.GetRangeByDepth]: {
		codec: requests.getRange,
		value: (golden) => ({ ...read(golden), startDepth: golden.fields.start_depth }),
	},
	[MsgType.GetBlob]: { codec: requests.getBlob, value: ({ fields }) => hash(fields.hash) },
	[MsgType.AttachFs]: {
		codec: requests.attachFs,
		value: ({ fields }) => ({ turnId: turn(fields.turn_id), root: hash(fields.fs_root_hash) }),
	},
	[MsgType.PutBlob]: {
		codec: requests.putBlob,
		value: ({ fields }) => ({ hash: hash(fields.hash), bytes: bytes(fields.bytes) }),
	},
	[MsgType.RegistryPutBundle]: {
		codec: requests.putBundle,
		value: ({ fields }) => ({ id: fields.bundle_id, json: Uint8Array.from(Buffer.from(fields.bundle_json)) }),
	},
	[MsgType.AppendBatch]: {
		codec: requests.appendBatch,
		value: (golden) => ({
			...target(golden),
			turns: golden.fields.turns.map(content),
			key: bytes(golden.fields.key),
		}),
	},
	[MsgType.Subscribe]: {
		codec: requests.subscribe,
		value: (golden) => ({
			contextId: golden.fields.context_id === "0" ? null : context(golden.fields.context_id),
			after: golden.fields.after_position === "18446744073709551615" ? null : BigInt(golden.fields.after_position),
			...itemOptions(golden),
		}),
	},
	[MsgType.Cancel]: { codec: requests.cancel, value: ({ fields }) => BigInt(fields.req_id) },
	[MsgType.HasBlobs]: { codec: requests.hasBlobs, value: ({ fields }) => fields.hashes },
};

function head(fields: Fields) {
	return {
		contextId: context(fields.context_id),
		headTurnId: optionalTurn(fields.head_turn_id),
		headDepth: fields.head_depth,
	};
}

function isExtended(golden: Golden): boolean {
	return ((golden.request_flags ?? 0) & 4) !== 0;
}

interface ResponseCase {
	readonly codec: responses.ResponseCodec<Fields>;
	readonly value: unknown;
}

/** How each response's fields are a value of this client. */
function responseOf(golden: Golden): ResponseCase {
	const { fields, msg_type } = golden;
	const page = () => ({ codec: responses.turnPage(isExtended(golden)), value: fields.items.map(item) });
	switch (msg_type) {
		case MsgType.Hello:
			return { codec: responses.session, value: { sessionId: BigInt(fields.session_id), version: fields.version } };
		case MsgType.CtxCreate:
		case MsgType.CtxFork:
		case MsgType.GetHead:
			return { codec: responses.contextHead, value: head(fields) };
		case MsgType.AppendTurn:
			return {
				codec: responses.turnAck,
				value: {
					contextId: context(fields.context_id),
					turnId: turn(fields.new_turn_id),
					depth: fields.new_depth,
					hash: fields.content_hash_b3_256,
				},
			};
		case MsgType.GetLast:
		case MsgType.GetBefore:
		case MsgType.GetRangeByDepth:
			return page();
		case MsgType.GetBlob:
			return { codec: responses.blob, value: bytes(fields.bytes) };
		case MsgType.AttachFs:
			return { codec: responses.attachedFs, value: { turnId: turn(fields.turn_id), root: fields.fs_root_hash } };
		case MsgType.PutBlob:
			return { codec: responses.blobAck, value: { hash: fields.hash, wasNew: fields.was_new === 1 } };
		case MsgType.RegistryPutBundle:
			return { codec: responses.bundleWasNew, value: fields.status === 201 };
		case MsgType.AppendBatch:
			return { codec: responses.batchAck, value: { contextId: context(fields.context_id), turns: batchTurns(fields) } };
		case MsgType.Subscribe:
			return subscriptionAnswer(golden);
		case MsgType.Cancel:
			return { codec: responses.empty, value: undefined };
		case MsgType.HasBlobs:
			return { codec: responses.blobsPresent, value: fields.present.map((present: number) => present === 1) };
		case MsgType.Error:
			return { codec: responses.failure, value: { status: fields.code, detail: fields.detail } };
	}
	throw new Error(`no response has the number ${msg_type}`);
}

function batchTurns(fields: Fields) {
	return fields.turns.map((ack: Fields) => ({ turnId: turn(ack.turn_id), depth: ack.depth, hash: ack.hash }));
}

function subscriptionAnswer(golden: Golden): ResponseCase {
	const { fields } = golden;
	if (fields.item === undefined) return { codec: responses.empty, value: undefined };
	const value = { position: BigInt(fields.position), contextId: context(fields.context_id), turn: item(fields.item) };
	return { codec: responses.delivery(isExtended(golden)), value };
}

function gather(hex: string, bytesMax = FRAME_BYTES_MAX): Frame[] {
	const frames: Frame[] = [];
	push(new FrameGatherer(bytesMax), fromHex(hex), (frame) => frames.push(frame));
	return frames;
}

function onlyFrame(hex: string): Frame {
	const [frame, ...more] = gather(hex);
	expect(more).toEqual([]);
	if (frame === undefined) throw new Error("no whole frame");
	return frame;
}

const goldenRequests = vectors<Golden[]>("frames/requests.json");
const goldenResponses = vectors<Golden[]>("frames/responses.json");

describe("golden requests", () => {
	it.each(goldenRequests)("$name", (golden) => {
		const known = REQUESTS[golden.msg_type];
		if (known === undefined) throw new Error(`no request has the number ${golden.msg_type}`);
		const value = known.value(golden);
		const out = new ByteWriter(1);
		requests.writeRequest(out, known.codec, BigInt(golden.req_id), value);
		expect(out.written().toString("hex")).toBe(golden.hex);
		expect(known.codec.flagsOf(value)).toBe(golden.flags);
		const frame = onlyFrame(golden.hex);
		expect(frame.reqId).toBe(BigInt(golden.req_id));
		expect(requests.readRequest(frame)).toEqual(value);
	});

	it("has an example of every request", () => {
		const covered = new Set(goldenRequests.map((golden) => golden.msg_type));
		expect([...covered].sort((a, b) => a - b)).toEqual(Object.keys(REQUESTS).map(Number));
	});
});

describe("golden responses", () => {
	it.each(goldenResponses)("$name", (golden) => {
		const { codec, value } = responseOf(golden);
		const out = new ByteWriter(1);
		const header = { msgType: golden.msg_type, flags: golden.flags, reqId: BigInt(golden.req_id) };
		writeFrame(out, header, (payload) => codec.write(payload, value));
		expect(out.written().toString("hex")).toBe(golden.hex);
		const frame = onlyFrame(golden.hex);
		expect({ msgType: frame.msgType, flags: frame.flags, reqId: frame.reqId }).toEqual(header);
		expect(codec.read(frame.payload)).toEqual(value);
		frame.payload.end();
	});

	it.each(goldenResponses)("$name is refused when its payload is cut anywhere or has a byte too much", (golden) => {
		const { codec } = responseOf(golden);
		const payload = fromHex(golden.hex).subarray(HEADER_BYTES);
		const answer = (bytes: Buffer) =>
			readAnswer({ msgType: 1, flags: 0, reqId: 1n, bytes: bytes.length, payload: new ByteReader(bytes) }, 1, codec);
		for (let length = 0; length < payload.length; length += 1) {
			expect(() => answer(payload.subarray(0, length))).toThrow(ProtocolError);
		}
		expect(() => answer(Buffer.concat([payload, Buffer.alloc(1)]))).toThrow(ProtocolError);
	});
});

describe("malformed requests", () => {
	const malformed = vectors<{ name: string; why: string; error: string; hex: string }[]>("frames/malformed.json");

	it.each(malformed)("$name: $why", ({ hex, error }) => {
		let refusal: unknown;
		try {
			requests.readRequest(onlyFrame(hex));
		} catch (caught) {
			refusal = caught;
		}
		expect(refusal).toBeInstanceOf(ProtocolError);
		expect((refusal as ProtocolError).fault).toBe(error);
	});
});

describe("frames in pieces", () => {
	it("are the same however the bytes are cut", () => {
		const all = Buffer.concat(goldenResponses.map((golden) => fromHex(golden.hex)));
		for (const step of [1, 2, 7, 15, 16, 17, 100, all.length]) {
			const seen: number[] = [];
			const gatherer = new FrameGatherer(FRAME_BYTES_MAX);
			for (let at = 0; at < all.length; at += step) {
				push(gatherer, all.subarray(at, at + step), (frame) => seen.push(frame.msgType));
			}
			expect(seen).toEqual(goldenResponses.map((golden) => golden.msg_type));
		}
	});

	it("of any size are whole, and keep what they hold when more comes", () => {
		const sizes = [0, 1, 70_000, 262_144, 300_000, (1 << 20) - 1, 1 << 20, 3 << 20, 5, 0];
		const bodies = sizes.map((size, index) => Buffer.alloc(size, index + 1));
		const out = new ByteWriter(1);
		for (const body of bodies) {
			writeFrame(out, { msgType: 9, flags: 0, reqId: 1n }, (payload) => payload.raw(body));
		}
		for (const step of [1000, 65_536, 200_000]) {
			const seen: Uint8Array[] = [];
			const gatherer = new FrameGatherer(FRAME_BYTES_MAX);
			for (let at = 0; at < out.length; at += step) {
				push(gatherer, out.written().subarray(at, at + step), (frame) => seen.push(frame.payload.raw(frame.bytes)));
			}
			expect(seen.map((body, index) => Buffer.compare(body, bodies[index] as Buffer))).toEqual(sizes.map(() => 0));
		}
	});

	it("refuses a frame over the bound at its header", () => {
		expect(() => gather("0500000001000000efcdab8967452381", 4)).toThrow(ProtocolError);
	});
});

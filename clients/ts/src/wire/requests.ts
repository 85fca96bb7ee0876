/**
 * Every request of the protocol: its fields, and its payload in both directions.
 *
 * A message is described once, by a {@link RequestCodec}: which flags it may have, which of them a value implies,
 * and how its payload is written and read. Reading is what servers do; here it keeps the tests' fake server and
 * the golden frames honest. What does not follow the protocol is a {@link ProtocolError}.
 */

import type { BlobHash } from "../core/blob-hash.js";
import { ProtocolError } from "../core/errors.js";
import { utf8Of } from "../core/text.js";
import type { ContextId, Position, TurnId } from "../node/ids.js";
import type { ByteReader, ByteWriter } from "./bytes.js";
import { beginFrame, endFrame, type Frame, MsgType } from "./frame.js";
import { type NewContent, readContent, readOptionalTurnId, readTurnId, writeContent } from "./turns.js";

const FLAG_FS_ROOT = 1;
const FLAG_STORED = 2;
const FLAG_DETAILS = 4;
const FLAG_EXPECTED_HEAD = 4;
const FLAG_KEY = 8;

const BATCH_TURNS_MAX = 1024;
/** The most hashes of one question about blobs. */
export const HAS_BLOBS_MAX = 65_536;
const ONLY_NEW = 2n ** 64n - 1n;

/** Who connects; null is the empty HELLO. */
export type Hello = { readonly version: number; readonly tag: string; readonly meta: string } | null;

/** An idempotency key; text is taken as its UTF-8 bytes, as over HTTP. */
export type IdempotencyKey = string | Uint8Array;

/** A new context whose head is `base`, or an empty one. */
export interface CreateContext {
	readonly base: TurnId | null;
	readonly key?: IdempotencyKey | undefined;
}

/** What appends of one turn and of many have in common. `expectedHead` null means: must be empty. */
export interface AppendTarget {
	readonly contextId: ContextId;
	readonly parentId: TurnId | null;
	readonly key: IdempotencyKey;
	readonly expectedHead?: TurnId | null | undefined;
}

export interface AppendTurn extends AppendTarget {
	readonly turn: NewContent;
	readonly fsRoot?: BlobHash | undefined;
}

export interface AppendBatch extends AppendTarget {
	readonly turns: readonly NewContent[];
}

/** How turns are to come back. */
export interface ItemOptions {
	/** With their payloads. */
	readonly payload: boolean;
	/** With the payloads in the form in which they are kept. */
	readonly stored: boolean;
	/** With creation time and filesystem root. */
	readonly details: boolean;
}

export interface GetLast extends ItemOptions {
	readonly contextId: ContextId;
	readonly limit: number;
}

export interface GetBefore extends GetLast {
	readonly before: TurnId | null;
}

export interface GetRange extends GetLast {
	readonly startDepth: number;
}

export interface AttachFs {
	readonly turnId: TurnId;
	readonly root: BlobHash;
}

export interface PutBlob {
	readonly hash: BlobHash;
	readonly bytes: Uint8Array;
}

export interface PutBundle {
	readonly id: string;
	readonly json: Uint8Array;
}

/** `contextId` null: all contexts. `after` null: only new appends. */
export interface Subscribe extends ItemOptions {
	readonly contextId: ContextId | null;
	readonly after: Position | null;
}

/** One message that clients send. */
export interface RequestCodec<T> {
	readonly msgType: number;
	readonly flagsAllowed: number;
	flagsOf(request: T): number;
	write(out: ByteWriter, request: T): void;
	read(input: ByteReader, flags: number): T;
}

/** Writes a whole request frame. */
export function writeRequest<T>(out: ByteWriter, codec: RequestCodec<T>, reqId: number | bigint, request: T): void {
	const start = beginFrame(out, codec.msgType, codec.flagsOf(request));
	if (typeof reqId === "number") out.u53(reqId);
	else out.u64(reqId);
	codec.write(out, request);
	endFrame(out, start);
}

/** Reads a request frame's payload with the codec of its number. */
export function readRequest(frame: Frame): unknown {
	const codec = REQUESTS.find((known) => known.msgType === frame.msgType);
	if (codec === undefined) throw new ProtocolError("unknown_type", `no request has the number ${frame.msgType}`);
	if ((frame.flags & ~codec.flagsAllowed) !== 0) {
		throw new ProtocolError("undefined_flags", `flags ${frame.flags} of message ${frame.msgType}`);
	}
	const request = codec.read(frame.payload, frame.flags);
	frame.payload.end();
	return request;
}

const noFlags = (): number => 0;

export const hello: RequestCodec<Hello> = {
	msgType: MsgType.Hello,
	flagsAllowed: 0,
	flagsOf: noFlags,
	write(out, request) {
		if (request === null) return;
		const tag = utf8Of(request.tag);
		out.u16(request.version);
		out.u16(tag.length);
		out.raw(tag);
		out.text(request.meta);
	},
	read(input) {
		if (input.left === 0) return null;
		return { version: input.u16(), tag: input.textOf(input.u16()), meta: input.text() };
	},
};

function contextCodec(msgType: number): RequestCodec<CreateContext> {
	return {
		msgType,
		flagsAllowed: FLAG_KEY,
		flagsOf: (request) => (request.key === undefined ? 0 : FLAG_KEY),
		write(out, request) {
			out.u64(request.base ?? 0n);
			if (request.key !== undefined) out.key(request.key);
		},
		read(input, flags) {
			const base = readOptionalTurnId(input);
			return flags & FLAG_KEY ? { base, key: input.bytes() } : { base };
		},
	};
}

export const createContext = contextCodec(MsgType.CtxCreate);
export const forkContext = contextCodec(MsgType.CtxFork);

export const getHead: RequestCodec<ContextId> = {
	msgType: MsgType.GetHead,
	flagsAllowed: 0,
	flagsOf: noFlags,
	write: (out, request) => out.u64(request),
	read: readContextId,
};

export const appendTurn: RequestCodec<AppendTurn> = {
	msgType: MsgType.AppendTurn,
	flagsAllowed: FLAG_FS_ROOT | FLAG_EXPECTED_HEAD,
	flagsOf: (request) =>
		(request.fsRoot === undefined ? 0 : FLAG_FS_ROOT) | (request.expectedHead === undefined ? 0 : FLAG_EXPECTED_HEAD),
	write(out, request) {
		out.u64(request.contextId);
		out.u64(request.parentId ?? 0n);
		writeContent(out, request.turn);
		out.key(request.key);
		if (request.fsRoot !== undefined) out.hash(request.fsRoot);
		if (request.expectedHead !== undefined) out.u64(request.expectedHead ?? 0n);
	},
	read(input, flags) {
		const request = {
			contextId: readContextId(input),
			parentId: readOptionalTurnId(input),
			turn: readContent(input),
			key: input.bytes(),
		};
		const withRoot = flags & FLAG_FS_ROOT ? { ...request, fsRoot: input.hash() } : request;
		return flags & FLAG_EXPECTED_HEAD ? { ...withRoot, expectedHead: readOptionalTurnId(input) } : withRoot;
	},
};

export const appendBatch: RequestCodec<AppendBatch> = {
	msgType: MsgType.AppendBatch,
	flagsAllowed: FLAG_EXPECTED_HEAD,
	flagsOf: (request) => (request.expectedHead === undefined ? 0 : FLAG_EXPECTED_HEAD),
	write(out, request) {
		out.u64(request.contextId);
		out.u64(request.parentId ?? 0n);
		out.u32(request.turns.length);
		for (const turn of request.turns) writeContent(out, turn);
		out.key(request.key);
		if (request.expectedHead !== undefined) out.u64(request.expectedHead ?? 0n);
	},
	read(input, flags) {
		const contextId = readContextId(input);
		const parentId = readOptionalTurnId(input);
		const turns = readMany(input, BATCH_TURNS_MAX, () => readContent(input));
		const request = { contextId, parentId, turns, key: input.bytes() };
		return flags & FLAG_EXPECTED_HEAD ? { ...request, expectedHead: readOptionalTurnId(input) } : request;
	},
};

export const getLast = readCodec<GetLast, Record<never, never>>(
	MsgType.GetLast,
	() => undefined,
	() => ({}),
);

export const getBefore = readCodec<GetBefore, { before: TurnId | null }>(
	MsgType.GetBefore,
	(out, request) => out.u64(request.before ?? 0n),
	(input) => ({ before: readOptionalTurnId(input) }),
);

export const getRange = readCodec<GetRange, { startDepth: number }>(
	MsgType.GetRangeByDepth,
	(out, request) => out.u32(request.startDepth),
	(input) => ({ startDepth: input.u32() }),
);

/** The three reads differ in the field between context and limit. */
function readCodec<T extends GetLast, Start extends object>(
	msgType: number,
	writeStart: (out: ByteWriter, request: T) => void,
	readStart: (input: ByteReader) => Start,
): RequestCodec<GetLast & Start & T> {
	return {
		msgType,
		flagsAllowed: FLAG_STORED | FLAG_DETAILS,
		flagsOf: itemFlags,
		write(out, request) {
			out.u64(request.contextId);
			writeStart(out, request);
			out.u32(request.limit);
			out.u32(request.payload ? 1 : 0);
		},
		read(input, flags) {
			const contextId = readContextId(input);
			const start = readStart(input);
			const limit = input.u32();
			return { contextId, ...start, limit, ...readItemOptions(input, flags) } as GetLast & Start & T;
		},
	};
}

export const getBlob: RequestCodec<BlobHash> = {
	msgType: MsgType.GetBlob,
	flagsAllowed: 0,
	flagsOf: noFlags,
	write: (out, request) => out.hash(request),
	read: (input) => input.hash(),
};

export const attachFs: RequestCodec<AttachFs> = {
	msgType: MsgType.AttachFs,
	flagsAllowed: 0,
	flagsOf: noFlags,
	write(out, request) {
		out.u64(request.turnId);
		out.hash(request.root);
	},
	read: (input) => ({ turnId: readTurnId(input), root: input.hash() }),
};

export const putBlob: RequestCodec<PutBlob> = {
	msgType: MsgType.PutBlob,
	flagsAllowed: 0,
	flagsOf: noFlags,
	write(out, request) {
		out.hash(request.hash);
		out.bytes(request.bytes);
	},
	read: (input) => ({ hash: input.hash(), bytes: input.bytes() }),
};

export const putBundle: RequestCodec<PutBundle> = {
	msgType: MsgType.RegistryPutBundle,
	flagsAllowed: 0,
	flagsOf: noFlags,
	write(out, request) {
		out.text(request.id);
		out.bytes(request.json);
	},
	read: (input) => ({ id: input.text(), json: input.bytes() }),
};

export const subscribe: RequestCodec<Subscribe> = {
	msgType: MsgType.Subscribe,
	flagsAllowed: FLAG_STORED | FLAG_DETAILS,
	flagsOf: itemFlags,
	write(out, request) {
		out.u64(request.contextId ?? 0n);
		out.u64(request.after ?? ONLY_NEW);
		out.u32(request.payload ? 1 : 0);
	},
	read(input, flags) {
		const contextId = input.u64();
		const after = input.u64();
		return {
			contextId: contextId === 0n ? null : (contextId as ContextId),
			after: after === ONLY_NEW ? null : after,
			...readItemOptions(input, flags),
		};
	},
};

export const cancel: RequestCodec<bigint> = {
	msgType: MsgType.Cancel,
	flagsAllowed: 0,
	flagsOf: noFlags,
	write: (out, request) => out.u64(request),
	read: (input) => input.u64(),
};

export const hasBlobs: RequestCodec<readonly BlobHash[]> = {
	msgType: MsgType.HasBlobs,
	flagsAllowed: 0,
	flagsOf: noFlags,
	write(out, request) {
		out.u32(request.length);
		for (const hash of request) out.hash(hash);
	},
	read: (input) => readMany(input, HAS_BLOBS_MAX, () => input.hash()),
};

const REQUESTS: readonly Pick<RequestCodec<unknown>, "msgType" | "flagsAllowed" | "read">[] = [
	hello,
	createContext,
	forkContext,
	getHead,
	appendTurn,
	getLast,
	getBefore,
	getRange,
	getBlob,
	attachFs,
	putBlob,
	putBundle,
	appendBatch,
	subscribe,
	cancel,
	hasBlobs,
];

function itemFlags(options: ItemOptions): number {
	return (options.stored ? FLAG_STORED : 0) | (options.details ? FLAG_DETAILS : 0);
}

function readItemOptions(input: ByteReader, flags: number): ItemOptions {
	return {
		payload: input.flag(input.u32()),
		stored: (flags & FLAG_STORED) !== 0,
		details: (flags & FLAG_DETAILS) !== 0,
	};
}

export function readContextId(input: ByteReader): ContextId {
	const id = input.u64();
	if (id === 0n) throw new ProtocolError("zero_id", "0 where a context has to be named");
	return id as ContextId;
}

/** A count of 32 bits and that many of something. */
export function readMany<T>(input: ByteReader, max: number, read: () => T): T[] {
	const count = input.u32();
	if (count > max) throw new ProtocolError("too_many", `${count} where at most ${max} are allowed`);
	const items: T[] = [];
	for (let index = 0; index < count; index += 1) items.push(read());
	return items;
}

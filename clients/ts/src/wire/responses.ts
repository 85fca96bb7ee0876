/**
 * Every response of the protocol, in both directions. Writing is what servers do; here it serves the tests'
 * fake server and the golden frames. What does not follow the protocol is a {@link ProtocolError}.
 */

import type { BlobHash } from "../core/blob-hash.js";
import { ProtocolError, ServerError } from "../core/errors.js";
import type { ContextId, Position, TurnId } from "../node/ids.js";
import type { ByteReader, ByteWriter } from "./bytes.js";
import { type AttachFs, readContextId, readMany } from "./requests.js";
import { readOptionalTurnId, readTurn, readTurnId, readTurns, type Turn, writeTurn } from "./turns.js";

/** The most items of any answer: of one question about blobs. A page has at most 10 000 turns, a batch 1024. */
const COUNT_MAX = 65_536;

/** Set on a subscription's answers once it has caught up. */
export const FLAG_CAUGHT_UP = 1;

/** One payload that servers send. */
export interface ResponseCodec<T> {
	write(out: ByteWriter, response: T): void;
	read(input: ByteReader): T;
}

/** The server's side of HELLO. */
export interface Session {
	readonly sessionId: bigint;
	readonly version: number;
}

export const session: ResponseCodec<Session> = {
	write(out, response) {
		out.u64(response.sessionId);
		out.u16(response.version);
	},
	read: (input) => ({ sessionId: input.u64(), version: input.u16() }),
};

/** A context's head. */
export interface ContextHead {
	/** The context. */
	readonly contextId: ContextId;
	/** The turn at its head; null for an empty context. */
	readonly headTurnId: TurnId | null;
	/** The head's depth, 0 for an empty context. */
	readonly headDepth: number;
}

export const contextHead: ResponseCodec<ContextHead> = {
	write(out, response) {
		out.u64(response.contextId);
		out.u64(response.headTurnId ?? 0n);
		out.u32(response.headDepth);
	},
	read: (input) => ({
		contextId: readContextId(input),
		headTurnId: readOptionalTurnId(input),
		headDepth: input.u32(),
	}),
};

/** A turn that is durable. */
export interface TurnAck {
	/** The context that it was appended to. */
	readonly contextId: ContextId;
	/** The new turn. */
	readonly turnId: TurnId;
	/** Its depth. */
	readonly depth: number;
	/** Its payload's hash. */
	readonly hash: BlobHash;
}

export const turnAck: ResponseCodec<TurnAck> = {
	write(out, response) {
		out.u64(response.contextId);
		writeAppended(out, response);
	},
	read(input) {
		const contextId = readContextId(input);
		return { contextId, turnId: readTurnId(input), depth: input.u32(), hash: input.hash() };
	},
};

/** Turns that are durable, in the order of the request. */
export interface BatchAck {
	/** The context that they were appended to. */
	readonly contextId: ContextId;
	/** The new turns. */
	readonly turns: readonly Omit<TurnAck, "contextId">[];
}

export const batchAck: ResponseCodec<BatchAck> = {
	write(out, response) {
		out.u64(response.contextId);
		out.u32(response.turns.length);
		for (const turn of response.turns) writeAppended(out, turn);
	},
	read(input) {
		const contextId = readContextId(input);
		const readOne = () => ({ turnId: readTurnId(input), depth: input.u32(), hash: input.hash() });
		return { contextId, turns: readMany(input, COUNT_MAX, readOne) };
	},
};

function writeAppended(out: ByteWriter, turn: Omit<TurnAck, "contextId">): void {
	out.u64(turn.turnId);
	out.u32(turn.depth);
	out.hash(turn.hash);
}

/** A page of turns; whether they have details is known only to who asked. */
export function turnPage(withDetails: boolean): ResponseCodec<readonly Turn[]> {
	return withDetails ? PAGE_WITH_DETAILS : PLAIN_PAGE;
}

const PLAIN_PAGE = pageCodec(false);
const PAGE_WITH_DETAILS = pageCodec(true);

function pageCodec(withDetails: boolean): ResponseCodec<readonly Turn[]> {
	return {
		write(out, response) {
			out.u32(response.length);
			for (const turn of response) writeTurn(out, turn, withDetails);
		},
		read: (input) => readTurns(input, COUNT_MAX, withDetails),
	};
}

export const blob: ResponseCodec<Uint8Array> = {
	write: (out, response) => out.bytes(response),
	read: (input) => input.bytes(),
};

export const attachedFs: ResponseCodec<AttachFs> = {
	write(out, response) {
		out.u64(response.turnId);
		out.hash(response.root);
	},
	read: (input) => ({ turnId: readTurnId(input), root: input.hash() }),
};

/** A blob that is durable. */
export interface BlobAck {
	/** Its name. */
	readonly hash: BlobHash;
	/** False if the store held it already. */
	readonly wasNew: boolean;
}

export const blobAck: ResponseCodec<BlobAck> = {
	write(out, response) {
		out.hash(response.hash);
		out.u8(response.wasNew ? 1 : 0);
	},
	read: (input) => ({ hash: input.hash(), wasNew: input.flag(input.u8()) }),
};

const BUNDLE_NEW = 201;
const BUNDLE_KNOWN = 204;

/** Whether a bundle was new. */
export const bundleWasNew: ResponseCodec<boolean> = {
	write: (out, response) => out.u32(response ? BUNDLE_NEW : BUNDLE_KNOWN),
	read(input) {
		const status = input.u32();
		if (status !== BUNDLE_NEW && status !== BUNDLE_KNOWN) {
			throw new ProtocolError("bad_value", `a bundle is never put with status ${status}`);
		}
		return status === BUNDLE_NEW;
	},
};

export const blobsPresent: ResponseCodec<readonly boolean[]> = {
	write(out, response) {
		out.u32(response.length);
		for (const present of response) out.u8(present ? 1 : 0);
	},
	read: (input) => readMany(input, COUNT_MAX, () => input.flag(input.u8())),
};

/** An append, as a subscription tells it. */
export interface Delivery {
	/** Its place in the feed; what to resume after. */
	readonly position: Position;
	/** The context that it was appended to. */
	readonly contextId: ContextId;
	/** The turn. */
	readonly turn: Turn;
}

export function delivery(withDetails: boolean): ResponseCodec<Delivery> {
	return {
		write(out, response) {
			out.u64(response.position);
			out.u64(response.contextId);
			writeTurn(out, response.turn, withDetails);
		},
		read: (input) => ({
			position: input.u64(),
			contextId: readContextId(input),
			turn: readTurn(input, withDetails),
		}),
	};
}

/** Nothing: the acceptance of a subscription, the answer to CANCEL. */
export const empty: ResponseCodec<void> = {
	write: () => undefined,
	read: () => undefined,
};

/** The payload of an ERROR frame. */
export interface Failure {
	readonly status: number;
	readonly detail: string;
}

export const failure: ResponseCodec<Failure> = {
	write(out, response) {
		out.u32(response.status);
		out.text(response.detail);
	},
	read: (input) => ({ status: input.u32(), detail: input.text() }),
};

/** What a caller gets for an ERROR frame. A detail may be plain text. */
export function serverError({ status, detail }: Failure): ServerError {
	const body = parseObject(detail);
	if (typeof body?.code !== "string" || typeof body.message !== "string") {
		return new ServerError(status, "Unknown", detail);
	}
	const details = isObject(body.details) ? body.details : {};
	return new ServerError(status, body.code, body.message, details);
}

function parseObject(json: string): Record<string, unknown> | undefined {
	try {
		const value: unknown = JSON.parse(json);
		return isObject(value) ? value : undefined;
	} catch {
		return undefined;
	}
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

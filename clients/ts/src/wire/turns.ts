/** Turns on the wire: as they are sent, and as items of reads and subscriptions. */

import type { BlobHash } from "../core/blob-hash.js";
import { ProtocolError } from "../core/errors.js";
import type { TurnId } from "../node/ids.js";
import type { ByteReader, ByteWriter } from "./bytes.js";

/** A type id with a version. */
export interface TypeRef {
	/** The type's id; empty if nothing is declared. */
	readonly id: string;
	/** Its version. */
	readonly version: number;
}

/** The number of msgpack, the encoding of typed payloads. */
export const MSGPACK = 1;

/** In which form a payload's bytes are: as they are, or one zstd frame. */
export type Compression = "none" | "zstd";

/** What a turn carries, whichever way it goes. */
export interface TurnContent {
	/** The type that its writer declared. */
	readonly type: TypeRef;
	/** The payload's encoding; 1 is msgpack. */
	readonly encoding: number;
	/** In which form `payload` is. */
	readonly compression: Compression;
	/** The length of the uncompressed payload. */
	readonly uncompressedLength: number;
	/** The hash of the uncompressed payload. */
	readonly hash: BlobHash;
	/** The payload in its form; empty if it was not asked for. */
	readonly payload: Uint8Array;
}

/** A turn as the server gives it. */
export interface Turn extends TurnContent {
	/** Its id. */
	readonly id: TurnId;
	/** The turn that it follows; null for a first turn. */
	readonly parentId: TurnId | null;
	/** How many turns are before it. */
	readonly depth: number;
	/** When it was appended; only if `details` were asked for. */
	readonly createdAt?: Date;
	/** The root of its filesystem tree, or null; only if `details` were asked for. */
	readonly fsRoot?: BlobHash | null;
}

const NO_HASH = "0".repeat(64);

export function writeContent(out: ByteWriter, content: TurnContent): void {
	out.text(content.type.id);
	out.u32(content.type.version);
	out.u32(content.encoding);
	out.u32(content.compression === "zstd" ? 1 : 0);
	out.u32(content.uncompressedLength);
	out.hash(content.hash);
	out.bytes(content.payload);
}

export function readContent(input: ByteReader): TurnContent {
	return {
		type: readTypeRef(input),
		encoding: input.u32(),
		compression: readCompression(input.u32()),
		uncompressedLength: input.u32(),
		hash: input.hash(),
		payload: input.bytes(),
	};
}

export function writeTurn(out: ByteWriter, turn: Turn, withDetails: boolean): void {
	out.u64(turn.id);
	out.u64(turn.parentId ?? 0n);
	out.u32(turn.depth);
	writeContent(out, turn);
	if (!withDetails) return;
	out.u64(BigInt(turn.createdAt?.getTime() ?? 0));
	out.hash(turn.fsRoot ?? (NO_HASH as BlobHash));
}

export function readTurn(input: ByteReader, withDetails: boolean): Turn {
	const turn = {
		id: readTurnId(input),
		parentId: readOptionalTurnId(input),
		depth: input.u32(),
		type: readTypeRef(input),
		encoding: input.u32(),
		compression: readCompression(input.u32()),
		uncompressedLength: input.u32(),
		hash: input.hash(),
		payload: input.bytes(),
	};
	if (!withDetails) return turn;
	const createdAt = new Date(Number(input.u64()));
	const root = input.hash();
	return { ...turn, createdAt, fsRoot: root === NO_HASH ? null : root };
}

export function readTurnId(input: ByteReader): TurnId {
	const id = input.u64();
	if (id === 0n) throw new ProtocolError("zero_id", "0 where a turn has to be named");
	return id as TurnId;
}

export function readOptionalTurnId(input: ByteReader): TurnId | null {
	const id = input.u64();
	return id === 0n ? null : (id as TurnId);
}

function readTypeRef(input: ByteReader): TypeRef {
	return { id: input.text(), version: input.u32() };
}

function readCompression(value: number): Compression {
	if (value > 1) throw new ProtocolError("bad_value", `there is no compression ${value}`);
	return value === 1 ? "zstd" : "none";
}

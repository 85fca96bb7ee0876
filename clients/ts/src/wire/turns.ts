/**
 * Turns on the wire: as they are sent, and as items of reads and subscriptions.
 *
 * Turns of one page share the memory that it came in and, where they have the same type, its {@link TypeRef}.
 */

import { type BlobHash, HASH_BYTES } from "../core/blob-hash.js";
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

/** A turn as the server returns it. */
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

/** What a turn is to carry; the hash is made on the way unless the caller has it. */
export type NewContent = Omit<TurnContent, "hash"> & { readonly hash: BlobHash | undefined };

const NO_HASH = "0".repeat(64);

export function writeContent(out: ByteWriter, content: NewContent): void {
	out.text(content.type.id);
	out.u32(content.type.version);
	out.u32(content.encoding);
	out.u32(content.compression === "zstd" ? 1 : 0);
	out.u32(content.uncompressedLength);
	if (content.hash === undefined) out.hashOf(content.payload);
	else out.hash(content.hash);
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

/** The fixed fields of a turn on the wire. */
const TURN_BYTES_MIN = 8 + 8 + 4 + 4 + 4 + 4 + 4 + 4 + HASH_BYTES + 4;

/** Reads a turn; `before` is the one that was read before it from the same page. */
function readItem(input: ByteReader, before: Turn | undefined): Turn {
	return {
		id: readTurnId(input),
		parentId: before !== undefined && input.isNextU64(before.id) ? before.id : readOptionalTurnId(input),
		depth: input.u32(),
		type: readTypeRef(input, before?.type),
		encoding: input.u32(),
		compression: readCompression(input.u32()),
		uncompressedLength: input.u32(),
		hash: input.hash(),
		payload: input.bytes(),
	};
}

/** The same with what only `details` give. */
function readDetailedItem(input: ByteReader, before: Turn | undefined): Turn {
	const turn = readItem(input, before);
	const createdAt = new Date(Number(input.u64()));
	const root = input.hash();
	return { ...turn, createdAt, fsRoot: root === NO_HASH ? null : root };
}

/** A count of 32 bits and that many turns. */
export function readTurns(input: ByteReader, max: number, withDetails: boolean): Turn[] {
	input.own();
	const count = input.u32();
	if (count > max) throw new ProtocolError("too_many", `${count} where at most ${max} are allowed`);
	if (count * TURN_BYTES_MIN > input.left)
		throw new ProtocolError("truncated", `${count} turns in ${input.left} bytes`);
	const turns: Turn[] = new Array(count);
	let before: Turn | undefined;
	for (let index = 0; index < count; index += 1) {
		before = withDetails ? readDetailedItem(input, before) : readItem(input, before);
		turns[index] = before;
	}
	return turns;
}

/** One turn alone. */
export function readTurn(input: ByteReader, withDetails: boolean): Turn {
	input.own();
	return withDetails ? readDetailedItem(input, undefined) : readItem(input, undefined);
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

/** A type, which is often that of the turn before. */
function readTypeRef(input: ByteReader, before?: TypeRef): TypeRef {
	const id = input.text();
	const version = input.u32();
	return before !== undefined && before.id === id && before.version === version ? before : { id, version };
}

function readCompression(value: number): Compression {
	if (value > 1) throw new ProtocolError("bad_value", `there is no compression ${value}`);
	return value === 1 ? "zstd" : "none";
}

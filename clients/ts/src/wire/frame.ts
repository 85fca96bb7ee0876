/**
 * Frames: what every message of the binary protocol travels in.
 *
 * | bytes | field | |
 * |---|---|---|
 * | 0–3 | `len` u32 | bytes of payload after the header |
 * | 4–5 | `msg_type` u16 | which message |
 * | 6–7 | `flags` u16 | bits whose meaning depends on the message |
 * | 8–15 | `req_id` u64 | chosen by the client, repeated in every answer |
 * | 16– | payload | `len` bytes |
 *
 * {@link FrameGatherer} makes frames of whatever pieces a socket gives. Its memory follows the bytes that came, never the
 * length that a header promises, and a frame over its bound is refused as soon as the header is there.
 */

import { ProtocolError } from "../core/errors.js";
import { ByteReader, type ByteWriter } from "./bytes.js";

export const HEADER_BYTES = 16;

/** The numbers of the messages. */
export const MsgType = {
	Hello: 1,
	CtxCreate: 2,
	CtxFork: 3,
	GetHead: 4,
	AppendTurn: 5,
	GetLast: 6,
	GetBefore: 7,
	GetRangeByDepth: 8,
	GetBlob: 9,
	AttachFs: 10,
	PutBlob: 11,
	RegistryPutBundle: 12,
	AppendBatch: 13,
	Subscribe: 14,
	Cancel: 15,
	HasBlobs: 16,
	Error: 255,
} as const;

/** A frame as it came; the payload is read through a {@link ByteReader}. */
export interface Frame {
	readonly msgType: number;
	readonly flags: number;
	readonly reqId: bigint;
	/** The payload's length. */
	readonly bytes: number;
	readonly payload: ByteReader;
}

/** Writes a frame: its header, then whatever `payload` writes. */
export function writeFrame(
	out: ByteWriter,
	header: { readonly msgType: number; readonly flags: number; readonly reqId: bigint },
	payload: (out: ByteWriter) => void,
): void {
	const start = out.length;
	out.u32(0);
	out.u16(header.msgType);
	out.u16(header.flags);
	out.u64(header.reqId);
	payload(out);
	out.patchU32(start, out.length - start - HEADER_BYTES);
}

/** A frame over the bound. Whoever asked for it must not ask again. */
export class FrameTooLongError extends ProtocolError {
	constructor(
		/** The request that it answers. */
		readonly reqId: bigint,
		bytes: number,
		max: number,
	) {
		super("frame_too_long", `a frame of ${bytes} bytes is over the limit of ${max}`);
	}
}

/** What a socket may put there at once. */
const ROOM_BYTES = 64 << 10;
const CAPACITY_BYTES = 4 * ROOM_BYTES;
/** A frame from this size on takes the memory with it in which it was gathered; smaller ones are copied out. */
const LARGE_FRAME_BYTES = 1 << 20;

/**
 * Makes frames of the pieces that a socket gives.
 *
 * The socket reads into {@link room}, one buffer for the connection's life, and {@link filled} hands over every frame
 * that is whole. A frame has memory of its own, so that what a caller keeps of it keeps nothing else.
 */
export class FrameGatherer {
	#buffer: Buffer = Buffer.allocUnsafeSlow(CAPACITY_BYTES);
	/** What was read and not yet handed over. */
	#start = 0;
	#end = 0;

	/** Refuses frames with a payload over `bytesMax`. */
	constructor(private readonly bytesMax: number) {}

	/** Where the next bytes go. */
	room(): Buffer {
		if (this.#buffer.length - this.#end < ROOM_BYTES) this.#makeRoom();
		return this.#buffer.subarray(this.#end);
	}

	/** Hands over every frame that is whole, after so many bytes were put into the room. */
	filled(bytes: number, deliver: (frame: Frame) => void): void {
		this.#end += bytes;
		for (let frame = this.#next(); frame !== null; frame = this.#next()) deliver(frame);
	}

	#next(): Frame | null {
		const at = this.#start;
		if (this.#end - at < HEADER_BYTES) return null;
		const bytes = this.#buffer.readUInt32LE(at);
		const reqId = this.#buffer.readBigUInt64LE(at + 8);
		if (bytes > this.bytesMax) throw new FrameTooLongError(reqId, bytes, this.bytesMax);
		if (this.#end - at - HEADER_BYTES < bytes) return null;
		const msgType = this.#buffer.readUInt16LE(at + 4);
		const flags = this.#buffer.readUInt16LE(at + 6);
		return { msgType, flags, reqId, bytes, payload: new ByteReader(this.#take(bytes)) };
	}

	/** The payload of the frame at the start, which is whole. */
	#take(bytes: number): Buffer {
		const payload = this.#buffer.subarray(this.#start + HEADER_BYTES, this.#start + HEADER_BYTES + bytes);
		this.#start += HEADER_BYTES + bytes;
		if (bytes < LARGE_FRAME_BYTES) return Buffer.from(payload);
		this.#moveInto(Buffer.allocUnsafeSlow(Math.max(CAPACITY_BYTES, this.#end - this.#start + ROOM_BYTES)));
		return payload;
	}

	/** Moves what is held to the front, of a larger buffer if it fills more than half of this one. */
	#makeRoom(): void {
		const isCrowded = this.#end - this.#start > this.#buffer.length / 2;
		this.#moveInto(isCrowded ? Buffer.allocUnsafeSlow(this.#buffer.length * 2) : this.#buffer);
	}

	#moveInto(buffer: Buffer): void {
		this.#buffer.copy(buffer, 0, this.#start, this.#end);
		this.#buffer = buffer;
		this.#end -= this.#start;
		this.#start = 0;
	}
}

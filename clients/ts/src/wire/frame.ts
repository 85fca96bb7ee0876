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
 * {@link FrameGatherer} makes frames of the pieces that a socket delivers. Its memory follows the bytes that
 * arrived, never the length that a header declares. It rejects a frame over its limit as soon as the header is complete.
 */

import { ProtocolError } from "../core/errors.js";
import { ByteReader, type ByteWriter, viewOf } from "./bytes.js";
import { Slab } from "./slab.js";

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
	const start = beginFrame(out, header.msgType, header.flags);
	out.u64(header.reqId);
	payload(out);
	endFrame(out, start);
}

/** Writes the start of a header; the request id and the payload go behind it. Returns where the frame begins. */
export function beginFrame(out: ByteWriter, msgType: number, flags: number): number {
	const start = out.length;
	out.u32(0);
	out.u16(msgType);
	out.u16(flags);
	return start;
}

/** Sets the length of the frame that began at `start`. */
export function endFrame(out: ByteWriter, start: number): void {
	out.patchU32(start, out.length - start - HEADER_BYTES);
}

/** A frame that lies in its gatherer's buffer. It is gone after its delivery unless its payload was made its own. */
export class GatheredFrame implements Frame {
	readonly msgType: number;
	readonly flags: number;
	readonly bytes: number;
	readonly payload: ByteReader;
	readonly #idLow: number;
	readonly #idHigh: number;

	/** Takes the header at `at` of a buffer's view. */
	constructor(view: DataView, at: number, payload: ByteReader) {
		this.bytes = view.getUint32(at, true);
		this.msgType = view.getUint16(at + 4, true);
		this.flags = view.getUint16(at + 6, true);
		this.#idLow = view.getUint32(at + 8, true);
		this.#idHigh = view.getUint32(at + 12, true);
		this.payload = payload;
	}

	get reqId(): bigint {
		return (BigInt(this.#idHigh) << 32n) | BigInt(this.#idLow);
	}

	/** The request's id as a number: exact for every id that this client assigns. */
	get id(): number {
		return this.#idHigh * 2 ** 32 + this.#idLow;
	}
}

/** A frame over the bound. Whoever asked for it must not ask again. */
export class FrameTooLongError extends ProtocolError {
	constructor(
		/** The request that it answers. */
		readonly id: number,
		bytes: number,
		max: number,
	) {
		super("frame_too_long", `a frame of ${bytes} bytes is over the limit of ${max}`);
	}
}

/** What a socket may put there at once. */
const ROOM_BYTES = 64 << 10;
const CAPACITY_BYTES = 4 * ROOM_BYTES;
/** A frame from this size on keeps the memory in which it was gathered; a smaller one is copied if it is kept. */
const LARGE_FRAME_BYTES = 1 << 20;
const NOTHING = new ByteReader(Buffer.alloc(0));

/**
 * Makes frames of the pieces that a socket delivers.
 *
 * The socket reads into {@link room}, one buffer for the connection's life, and {@link filled} hands over every frame
 * that is whole. A frame is read where it lies; who keeps a part of it makes it its own, so that it keeps nothing else.
 */
export class FrameGatherer {
	#buffer: Buffer = Buffer.allocUnsafeSlow(CAPACITY_BYTES);
	#view = viewOf(this.#buffer);
	readonly #slab = new Slab();
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
	filled(bytes: number, deliver: (frame: GatheredFrame) => void): void {
		this.#end += bytes;
		for (let frame = this.#next(); frame !== null; frame = this.#next()) deliver(frame);
		if (this.#start === this.#end) this.#start = this.#end = 0;
	}

	#next(): GatheredFrame | null {
		const at = this.#start;
		if (this.#end - at < HEADER_BYTES) return null;
		const bytes = this.#view.getUint32(at, true);
		if (bytes > this.bytesMax) {
			throw new FrameTooLongError(new GatheredFrame(this.#view, at, NOTHING).id, bytes, this.bytesMax);
		}
		if (this.#end - at - HEADER_BYTES < bytes) return null;
		const isLarge = bytes >= LARGE_FRAME_BYTES;
		const start = at + HEADER_BYTES;
		const payload = new ByteReader(this.#buffer, start, start + bytes, this.#view, isLarge ? null : this.#slab);
		const frame = new GatheredFrame(this.#view, at, payload);
		this.#start = start + bytes;
		if (isLarge) this.#giveAway();
		return frame;
	}

	/** Leaves the buffer to a large frame that lies in it. */
	#giveAway(): void {
		this.#moveInto(Buffer.allocUnsafeSlow(Math.max(CAPACITY_BYTES, this.#end - this.#start + ROOM_BYTES)));
	}

	/** Moves the held bytes to the front, into a larger buffer if they fill more than half of this one. */
	#makeRoom(): void {
		const isCrowded = this.#end - this.#start > this.#buffer.length / 2;
		this.#moveInto(isCrowded ? Buffer.allocUnsafeSlow(this.#buffer.length * 2) : this.#buffer);
	}

	#moveInto(buffer: Buffer): void {
		this.#buffer.copy(buffer, 0, this.#start, this.#end);
		if (buffer !== this.#buffer) this.#view = viewOf(buffer);
		this.#buffer = buffer;
		this.#end -= this.#start;
		this.#start = 0;
	}
}

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
 * {@link FrameGatherer} makes frames of whatever pieces a socket gives. It holds only bytes that came, never the
 * room that a header promises, and refuses a frame over its bound as soon as the header is there.
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

/** Makes frames of the pieces that a socket gives. */
export class FrameGatherer {
	#pieces: Buffer[] = [];
	#bytes = 0;
	/** What must be there before something can be done. */
	#needed = HEADER_BYTES;

	/** Refuses frames with a payload over `bytesMax`. */
	constructor(private readonly bytesMax: number) {}

	/** Whether the beginning of a frame waits for its end. */
	get isWithinFrame(): boolean {
		return this.#bytes > 0;
	}

	/** Takes a piece and hands over every frame that is whole. */
	push(piece: Buffer, deliver: (frame: Frame) => void): void {
		this.#pieces.push(piece);
		this.#bytes += piece.length;
		if (this.#bytes < this.#needed) return;
		const joined = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces, this.#bytes);
		const taken = this.#deliverWhole(joined, deliver);
		const rest = joined.subarray(taken);
		this.#pieces = rest.length > 0 ? [rest] : [];
		this.#bytes = rest.length;
	}

	/** Hands over the whole frames at the start of `joined`; gives where they end. */
	#deliverWhole(joined: Buffer, deliver: (frame: Frame) => void): number {
		let at = 0;
		for (;;) {
			this.#needed = HEADER_BYTES;
			if (joined.length - at < HEADER_BYTES) return at;
			const bytes = joined.readUInt32LE(at);
			if (bytes > this.bytesMax) {
				throw new ProtocolError("frame_too_long", `a frame of ${bytes} bytes is over the limit of ${this.bytesMax}`);
			}
			const end = at + HEADER_BYTES + bytes;
			if (end > joined.length) {
				this.#needed = end - at;
				return at;
			}
			deliver({
				msgType: joined.readUInt16LE(at + 4),
				flags: joined.readUInt16LE(at + 6),
				reqId: joined.readBigUInt64LE(at + 8),
				bytes,
				payload: new ByteReader(joined, at + HEADER_BYTES, end),
			});
			at = end;
		}
	}
}

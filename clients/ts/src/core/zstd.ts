/**
 * Undoes the compression of payloads that are kept as zstd, within bounds.
 *
 * The declared length is the bound: a frame that asks for a larger window or has more bytes is refused before
 * memory is spent on it. The length itself is believed up to a bound of its own, for a few bytes can claim gigabytes.
 * Any fault is a {@link PayloadError}.
 */

import { Decompress } from "fzstd";
import { PayloadError } from "./errors.js";

/** Windows up to this are legal whatever the payload's length. */
const WINDOW_BYTES_MAX = 8 << 20;
/** The longest payload that is decompressed; servers keep none that is nearly as long. */
const RAW_BYTES_MAX = 128 << 20;
const MAGIC = 0xfd2fb528;
/** The least that a frame header takes. */
const HEADER_BYTES_MIN = 6;

/** The `length` bytes that one zstd frame holds. */
export function decompressZstd(frame: Uint8Array, length: number): Uint8Array {
	if (length > RAW_BYTES_MAX)
		throw new PayloadError("compression", `a payload of ${length} bytes is over the limit of ${RAW_BYTES_MAX}`);
	checkHeader(frame, Math.max(length, WINDOW_BYTES_MAX));
	const out = new Uint8Array(length);
	let at = 0;
	const decoder = new Decompress((chunk) => {
		if (at + chunk.length > length)
			throw new PayloadError("compression", `a zstd frame gives more than the ${length} bytes it declared`);
		out.set(chunk, at);
		at += chunk.length;
	});
	try {
		decoder.push(frame, true);
	} catch (cause) {
		if (cause instanceof PayloadError) throw cause;
		throw new PayloadError("compression", "a payload does not decompress", { cause });
	}
	if (at !== length)
		throw new PayloadError("compression", `a zstd frame gives ${at} bytes, not the ${length} it declared`);
	return out;
}

/** Rejects bytes that are not a zstd frame, and a window over `max`, which the decoder would allocate at once. */
function checkHeader(frame: Uint8Array, max: number): void {
	const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
	if (frame.length < HEADER_BYTES_MIN || view.getUint32(0, true) !== MAGIC) {
		throw new PayloadError("compression", "a payload that should be zstd is no zstd frame");
	}
	const window = windowBytes(view);
	if (window > max)
		throw new PayloadError("compression", `a zstd frame wants a window of ${window} bytes, over the limit of ${max}`);
}

function windowBytes(view: DataView): number {
	const descriptor = view.getUint8(4);
	const isSingleSegment = (descriptor & 0x20) !== 0;
	if (!isSingleSegment) {
		const base = 2 ** (10 + (view.getUint8(5) >> 3));
		return base + (base / 8) * (view.getUint8(5) & 7);
	}
	// The window is the content: its size follows the dictionary's id.
	const at = 5 + ([0, 1, 2, 4][descriptor & 3] as number);
	const sizeBytes = 1 << (descriptor >> 6);
	if (view.byteLength < at + sizeBytes) throw new PayloadError("compression", "a zstd frame ends within its header");
	if (sizeBytes === 1) return view.getUint8(at);
	// Two bytes count from 256: what is below fits into one.
	if (sizeBytes === 2) return view.getUint16(at, true) + 256;
	return sizeBytes === 4 ? view.getUint32(at, true) : Number(view.getBigUint64(at, true));
}

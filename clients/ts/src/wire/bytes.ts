/**
 * Little-endian fields in a buffer: a writer that grows, and a reader that never trusts a length.
 *
 * The reader checks every length against the remaining bytes before it slices; a length that does not fit is a
 * {@link ProtocolError}. The bytes that it returns are views of the frame, which has memory of its own by then.
 */

import { isUtf8 } from "node:buffer";
import { blake3Into } from "../core/blake3.js";
import { type BlobHash, HASH_BYTES } from "../core/blob-hash.js";
import { ProtocolError } from "../core/errors.js";
import { utf8Of } from "../core/text.js";
import type { Slab } from "./slab.js";

const U64_MAX = 2n ** 64n - 1n;
const U32_SPAN = 2 ** 32;
const NO_BYTES = new Uint8Array(0);

/** A buffer that frames are written into, one behind the other. */
export class ByteWriter {
	#buffer: Buffer;
	#view: DataView;
	#length = 0;
	#lastText = "";
	#lastTextBytes: Uint8Array = NO_BYTES;

	constructor(capacity: number) {
		this.#buffer = Buffer.allocUnsafeSlow(capacity);
		this.#view = viewOf(this.#buffer);
	}

	/** How many bytes were written. */
	get length(): number {
		return this.#length;
	}

	/** How many bytes it holds without growing. */
	get capacity(): number {
		return this.#buffer.length;
	}

	/** What was written, as a view: it changes with the next write after a {@link truncate}. */
	written(): Buffer {
		return this.#buffer.subarray(0, this.#length);
	}

	/** Forgets everything behind `length`. */
	truncate(length: number): void {
		this.#length = length;
	}

	u8(value: number): void {
		const at = this.#take(1);
		this.#view.setUint8(at, value);
	}

	u16(value: number): void {
		const at = this.#take(2);
		this.#view.setUint16(at, checked(value, 0xffff), true);
	}

	u32(value: number): void {
		const at = this.#take(4);
		this.#view.setUint32(at, checked(value, 0xffff_ffff), true);
	}

	u64(value: bigint): void {
		if (value < 0n || value > U64_MAX) throw new RangeError(`${value} is no unsigned number of 64 bits`);
		const at = this.#take(8);
		this.#view.setBigUint64(at, value, true);
	}

	/** A number of 64 bits that is an exact JavaScript number. */
	u53(value: number): void {
		const at = this.#take(8);
		this.#view.setUint32(at, value % U32_SPAN, true);
		this.#view.setUint32(at + 4, Math.floor(value / U32_SPAN), true);
	}

	hash(hash: BlobHash): void {
		const at = this.#take(HASH_BYTES);
		if (this.#buffer.write(hash, at, "hex") !== HASH_BYTES) throw new TypeError(`not a blob hash: ${hash}`);
	}

	/** The hash of these bytes. */
	hashOf(bytes: Uint8Array): void {
		const at = this.#take(HASH_BYTES);
		blake3Into(this.#buffer, at, bytes);
	}

	/** Bytes without their length. */
	raw(bytes: Uint8Array): void {
		const at = this.#take(bytes.length);
		this.#buffer.set(bytes, at);
	}

	/** A length of 32 bits and the bytes. */
	bytes(bytes: Uint8Array): void {
		this.u32(bytes.length);
		this.raw(bytes);
	}

	/** A length of 32 bits and the text as UTF-8. A text that comes again, as types do, is encoded once. */
	text(text: string): void {
		if (text !== this.#lastText) {
			this.#lastTextBytes = utf8Of(text);
			this.#lastText = text;
		}
		this.bytes(this.#lastTextBytes);
	}

	/** A length of 32 bits and the bytes, or the text as UTF-8. */
	key(key: string | Uint8Array): void {
		if (key.length === 0) this.u32(0);
		else this.bytes(typeof key === "string" ? utf8Of(key) : key);
	}

	/** Sets a number of 32 bits that was written earlier. */
	patchU32(at: number, value: number): void {
		this.#view.setUint32(at, value, true);
	}

	/** Makes room for `bytes` more and returns their offset. The buffer may be replaced. */
	#take(bytes: number): number {
		const at = this.#length;
		if (at + bytes > this.#buffer.length) this.#grow(at + bytes);
		this.#length = at + bytes;
		return at;
	}

	#grow(needed: number): void {
		const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * 2));
		larger.set(this.written());
		this.#buffer = larger;
		this.#view = viewOf(larger);
	}
}

/** The fields of one payload, from its start to its end. */
export class ByteReader {
	#buffer: Buffer;
	#view: DataView;
	#at: number;
	#end: number;
	#slab: Slab | null;
	#lastText = "";
	#lastTextAt = 0;
	#lastTextLength = -1;

	/** Reads `buffer` from `start` to `end`. With a slab, the buffer is only lent: {@link own} copies it there. */
	constructor(buffer: Buffer, start = 0, end = buffer.length, view = viewOf(buffer), slab: Slab | null = null) {
		this.#buffer = buffer;
		this.#view = view;
		this.#at = start;
		this.#end = end;
		this.#slab = slab;
	}

	/** Copies the unread bytes out of a borrowed buffer. A caller that keeps a part of them must call this first. */
	own(): void {
		if (this.#slab === null) return;
		const copy = this.#slab.take(this.left);
		this.#buffer.copy(copy, 0, this.#at, this.#end);
		this.#buffer = copy;
		this.#view = viewOf(copy);
		this.#at = 0;
		this.#end = copy.length;
		this.#slab = null;
		this.#lastTextLength = -1;
	}

	/** How many bytes are left. */
	get left(): number {
		return this.#end - this.#at;
	}

	u8(): number {
		return this.#view.getUint8(this.#take(1));
	}

	u16(): number {
		return this.#view.getUint16(this.#take(2), true);
	}

	u32(): number {
		return this.#view.getUint32(this.#take(4), true);
	}

	u64(): bigint {
		return this.#view.getBigUint64(this.#take(8), true);
	}

	/** Whether the next number of 64 bits is this one; takes it if so. */
	isNextU64(value: bigint): boolean {
		if (this.left < 8 || this.#view.getBigUint64(this.#at, true) !== value) return false;
		this.#at += 8;
		return true;
	}

	hash(): BlobHash {
		const at = this.#take(HASH_BYTES);
		return this.#buffer.toString("hex", at, at + HASH_BYTES) as BlobHash;
	}

	/** Bytes without a length before them. */
	raw(length: number): Uint8Array {
		this.own();
		const at = this.#take(length);
		return new Uint8Array(this.#buffer.buffer, this.#buffer.byteOffset + at, length);
	}

	/** A length of 32 bits and the bytes. */
	bytes(): Uint8Array {
		return this.raw(this.u32());
	}

	/** A length of 32 bits and UTF-8. A text that comes again, as the types of a page do, is decoded once. */
	text(): string {
		const length = this.u32();
		const at = this.#at;
		if (this.#isLastText(length)) {
			this.#at = at + length;
			return this.#lastText;
		}
		this.#lastText = this.textOf(length);
		this.#lastTextAt = at;
		this.#lastTextLength = length;
		return this.#lastText;
	}

	#isLastText(length: number): boolean {
		if (length !== this.#lastTextLength || length > this.left) return false;
		for (let index = 0; index < length; index += 1) {
			if (this.#buffer[this.#at + index] !== this.#buffer[this.#lastTextAt + index]) return false;
		}
		return true;
	}

	/** UTF-8 without a length before it. */
	textOf(length: number): string {
		const at = this.#take(length);
		if (!isUtf8(this.#buffer.subarray(at, at + length))) throw new ProtocolError("not_utf8", "a text is not UTF-8");
		return this.#buffer.toString("utf8", at, at + length);
	}

	/** A number that is 0 or 1. */
	flag(value: number): boolean {
		if (value > 1) throw new ProtocolError("bad_value", `${value} where 0 or 1 belongs`);
		return value === 1;
	}

	/** Refuses bytes behind the last field. */
	end(): void {
		if (this.left > 0) throw new ProtocolError("left_over", `${this.left} bytes after the last field`);
	}

	#take(bytes: number): number {
		const at = this.#at;
		if (bytes > this.#end - at) {
			throw new ProtocolError("truncated", `a field of ${bytes} bytes where ${this.#end - at} are left`);
		}
		this.#at = at + bytes;
		return at;
	}
}

export function viewOf(buffer: Buffer): DataView {
	return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

function checked(value: number, max: number): number {
	if (!Number.isInteger(value) || value < 0 || value > max) {
		throw new RangeError(`${value} is not an integer from 0 to ${max}`);
	}
	return value;
}

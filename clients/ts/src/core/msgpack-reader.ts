/**
 * Reads msgpack that may come from anywhere. Lengths and counts are believed only as far as the bytes reach, nesting is
 * bounded, and every fault is a {@link PayloadError}. Binary values are views of the input, not copies.
 */

import { PayloadError } from "./errors.js";
import { Extension, exact, type MsgValue, NESTING_MAX } from "./msgpack-value.js";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A value's head: a scalar as it is, or what follows and how much of it. */
export type Token =
	| { readonly kind: "nil" }
	| { readonly kind: "bool"; readonly value: boolean }
	| { readonly kind: "int"; readonly value: number | bigint }
	| { readonly kind: "float"; readonly value: number }
	| { readonly kind: "str"; readonly bytes: Uint8Array }
	| { readonly kind: "bin"; readonly bytes: Uint8Array }
	| { readonly kind: "ext"; readonly type: number; readonly bytes: Uint8Array }
	| { readonly kind: "array"; readonly count: number }
	| { readonly kind: "map"; readonly count: number };

const NIL: Token = { kind: "nil" };

export class MsgpackReader {
	readonly #bytes: Uint8Array;
	readonly #view: DataView;
	#at = 0;

	constructor(bytes: Uint8Array) {
		this.#bytes = bytes;
		this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	}

	/** Where the next value begins. */
	get position(): number {
		return this.#at;
	}

	/** The bytes from a position to the next value. */
	since(start: number): Uint8Array {
		return this.#bytes.subarray(start, this.#at);
	}

	/** The number of entries of the map that a payload is. */
	payload(): number {
		if (this.#bytes.length === 0) throw new PayloadError("empty", "there are no bytes, and so no payload");
		const token = this.token();
		if (token.kind !== "map")
			throw new PayloadError("not_a_map", `a payload is a map, not a value of kind ${token.kind}`);
		return token.count;
	}

	/** Refuses bytes after the last value. */
	finish(): void {
		const left = this.#bytes.length - this.#at;
		if (left > 0) throw new PayloadError("trailing", `${left} bytes follow the payload`);
	}

	/** A whole value. `depth` is the number of containers around it. */
	value(depth: number): MsgValue {
		return this.valueOf(this.token(), depth);
	}

	/** The value whose head was just read. */
	valueOf(token: Token, depth: number): MsgValue {
		switch (token.kind) {
			case "nil":
				return null;
			case "bool":
			case "int":
			case "float":
				return token.value;
			case "str":
				return textOf(token.bytes);
			case "bin":
				return token.bytes;
			case "ext":
				return new Extension(token.type, token.bytes);
			case "array":
				return this.#array(token.count, enter(depth));
			case "map":
				return this.#map(token.count, enter(depth));
		}
	}

	/** Passes over a whole value. */
	skip(depth: number): void {
		const token = this.token();
		if (token.kind !== "array" && token.kind !== "map") return;
		const inside = enter(depth);
		const values = token.kind === "map" ? token.count * 2 : token.count;
		for (let index = 0; index < values; index += 1) this.skip(inside);
	}

	/** The next head. */
	token(): Token {
		const head = this.#u8();
		if (head < 0x80) return { kind: "int", value: head };
		if (head < 0x90) return this.#container("map", head & 0x0f);
		if (head < 0xa0) return this.#container("array", head & 0x0f);
		if (head < 0xc0) return { kind: "str", bytes: this.#take(head & 0x1f) };
		if (head >= 0xe0) return { kind: "int", value: head - 0x100 };
		return this.#longToken(head);
	}

	#longToken(head: number): Token {
		switch (head) {
			case 0xc0:
				return NIL;
			case 0xc1:
				throw new PayloadError("reserved", `byte ${this.#at - 1} is 0xc1, which begins no value`);
			case 0xc2:
			case 0xc3:
				return { kind: "bool", value: head === 0xc3 };
			case 0xca:
				return { kind: "float", value: this.#view.getFloat32(this.#advance(4)) };
			case 0xcb:
				return { kind: "float", value: this.#view.getFloat64(this.#advance(8)) };
			case 0xdc:
			case 0xdd:
				return this.#container("array", this.#uint(head - 0xdc + 1));
			case 0xde:
			case 0xdf:
				return this.#container("map", this.#uint(head - 0xde + 1));
		}
		if (head <= 0xc6) return { kind: "bin", bytes: this.#take(this.#uint(head - 0xc4)) };
		if (head <= 0xc9) return this.#extension(this.#uint(head - 0xc7));
		if (head <= 0xd3) return { kind: "int", value: this.#integer(head) };
		if (head <= 0xd8) return this.#extension(1 << (head - 0xd4));
		return { kind: "str", bytes: this.#take(this.#uint(head - 0xd9)) };
	}

	#integer(head: number): number | bigint {
		switch (head) {
			case 0xcf:
				return exact(this.#view.getBigUint64(this.#advance(8)));
			case 0xd0:
				return this.#view.getInt8(this.#advance(1));
			case 0xd1:
				return this.#view.getInt16(this.#advance(2));
			case 0xd2:
				return this.#view.getInt32(this.#advance(4));
			case 0xd3:
				return exact(this.#view.getBigInt64(this.#advance(8)));
			default:
				return this.#uint(head - 0xcc);
		}
	}

	/** An unsigned number of 1, 2 or 4 bytes, by the binary logarithm of their number. */
	#uint(size: number): number {
		if (size === 0) return this.#u8();
		return size === 1 ? this.#view.getUint16(this.#advance(2)) : this.#view.getUint32(this.#advance(4));
	}

	#extension(length: number): Token {
		const type = this.#view.getInt8(this.#advance(1));
		return { kind: "ext", type, bytes: this.#take(length) };
	}

	/** A container's head, if so many values can follow at all. */
	#container(kind: "array" | "map", count: number): Token {
		const least = kind === "map" ? count * 2 : count;
		if (least > this.#bytes.length - this.#at) throw this.#truncated();
		return { kind, count };
	}

	#array(count: number, depth: number): MsgValue[] {
		return Array.from({ length: count }, () => this.value(depth));
	}

	#map(count: number, depth: number): Map<MsgValue, MsgValue> {
		const map = new Map<MsgValue, MsgValue>();
		for (let index = 0; index < count; index += 1) map.set(this.value(depth), this.value(depth));
		return map;
	}

	#u8(): number {
		return this.#view.getUint8(this.#advance(1));
	}

	#take(length: number): Uint8Array {
		const at = this.#advance(length);
		return this.#bytes.subarray(at, at + length);
	}

	#advance(length: number): number {
		const at = this.#at;
		if (length > this.#bytes.length - at) throw this.#truncated();
		this.#at = at + length;
		return at;
	}

	#truncated(): PayloadError {
		return new PayloadError("truncated", `the payload ends inside a value at byte ${this.#at}`);
	}
}

/** One level deeper, if that is allowed. */
export function enter(depth: number): number {
	if (depth >= NESTING_MAX) throw new PayloadError("too_deep", `values nest deeper than ${NESTING_MAX} levels`);
	return depth + 1;
}

/** A text, or its bytes if they are not UTF-8. */
export function textOf(bytes: Uint8Array): string | Uint8Array {
	try {
		return utf8.decode(bytes);
	} catch {
		return bytes;
	}
}

/** Writes msgpack into memory, every value in its shortest form. */

import { utf8Of } from "./text.js";

const CAPACITY_FIRST = 256;
const U64_MAX = 2n ** 64n - 1n;
const I64_MIN = -(2n ** 63n);

/** Where a kind of value with a length has its short and its long heads. */
interface Heads {
	/** The head of the short form and the lengths below which it is used; some kinds have none. */
	readonly fix?: readonly [head: number, below: number];
	readonly h8?: number;
	readonly h16: number;
	readonly h32: number;
}

const STR: Heads = { fix: [0xa0, 32], h8: 0xd9, h16: 0xda, h32: 0xdb };
const BIN: Heads = { h8: 0xc4, h16: 0xc5, h32: 0xc6 };
const ARRAY: Heads = { fix: [0x90, 16], h16: 0xdc, h32: 0xdd };
const MAP: Heads = { fix: [0x80, 16], h16: 0xde, h32: 0xdf };
const EXT: Heads = { h8: 0xc7, h16: 0xc8, h32: 0xc9 };
const FIXED_EXT: ReadonlyMap<number, number> = new Map([
	[1, 0xd4],
	[2, 0xd5],
	[4, 0xd6],
	[8, 0xd7],
	[16, 0xd8],
]);

export class MsgpackWriter {
	#buffer = new Uint8Array(CAPACITY_FIRST);
	#view = new DataView(this.#buffer.buffer);
	#length = 0;

	/** What was written. */
	bytes(): Uint8Array {
		return this.#buffer.slice(0, this.#length);
	}

	nil(): void {
		this.#u8(0xc0);
	}

	bool(value: boolean): void {
		this.#u8(value ? 0xc3 : 0xc2);
	}

	/** A whole number from the least i64 to the greatest u64. */
	int(value: number | bigint): void {
		if (value > U64_MAX || value < I64_MIN) throw new RangeError(`${value} has more than 64 bits`);
		if (value >= 0) this.#uint(value);
		else this.#negative(value);
	}

	f32(value: number): void {
		this.#u8(0xca);
		const at = this.#take(4);
		this.#view.setFloat32(at, value);
	}

	f64(value: number): void {
		this.#u8(0xcb);
		const at = this.#take(8);
		this.#view.setFloat64(at, value);
	}

	/** A text; throws a `TypeError` if it is no Unicode text. */
	str(value: string): void {
		const bytes = utf8Of(value);
		this.#head(STR, bytes.length);
		this.raw(bytes);
	}

	bin(value: Uint8Array): void {
		this.#head(BIN, value.length);
		this.raw(value);
	}

	array(count: number): void {
		this.#head(ARRAY, count);
	}

	map(count: number): void {
		this.#head(MAP, count);
	}

	ext(kind: number, data: Uint8Array): void {
		const fixed = FIXED_EXT.get(data.length);
		if (fixed === undefined) this.#head(EXT, data.length);
		else this.#u8(fixed);
		const at = this.#take(1);
		this.#view.setInt8(at, kind);
		this.raw(data);
	}

	/** Bytes as they are. */
	raw(bytes: Uint8Array): void {
		const at = this.#take(bytes.length);
		this.#buffer.set(bytes, at);
	}

	#uint(value: number | bigint): void {
		if (value < 0x80) this.#u8(Number(value));
		else if (value <= 0xff) this.#sized(0xcc, 1, (at) => this.#view.setUint8(at, Number(value)));
		else if (value <= 0xffff) this.#sized(0xcd, 2, (at) => this.#view.setUint16(at, Number(value)));
		else if (value <= 0xffff_ffff) this.#sized(0xce, 4, (at) => this.#view.setUint32(at, Number(value)));
		else this.#sized(0xcf, 8, (at) => this.#view.setBigUint64(at, BigInt(value)));
	}

	#negative(value: number | bigint): void {
		if (value >= -0x20) this.#u8(Number(value) & 0xff);
		else if (value >= -0x80) this.#sized(0xd0, 1, (at) => this.#view.setInt8(at, Number(value)));
		else if (value >= -0x8000) this.#sized(0xd1, 2, (at) => this.#view.setInt16(at, Number(value)));
		else if (value >= -0x8000_0000) this.#sized(0xd2, 4, (at) => this.#view.setInt32(at, Number(value)));
		else this.#sized(0xd3, 8, (at) => this.#view.setBigInt64(at, BigInt(value)));
	}

	#head(heads: Heads, length: number): void {
		if (heads.fix !== undefined && length < heads.fix[1]) this.#u8(heads.fix[0] | length);
		else if (heads.h8 !== undefined && length <= 0xff)
			this.#sized(heads.h8, 1, (at) => this.#view.setUint8(at, length));
		else if (length <= 0xffff) this.#sized(heads.h16, 2, (at) => this.#view.setUint16(at, length));
		else this.#sized(heads.h32, 4, (at) => this.#view.setUint32(at, length));
	}

	#sized(head: number, bytes: number, write: (at: number) => void): void {
		this.#u8(head);
		write(this.#take(bytes));
	}

	#u8(value: number): void {
		const at = this.#take(1);
		this.#buffer[at] = value;
	}

	/** Makes room and returns the offset. The buffer may be replaced. */
	#take(bytes: number): number {
		const at = this.#length;
		this.#length = at + bytes;
		if (this.#length > this.#buffer.length) {
			const larger = new Uint8Array(Math.max(this.#length, this.#buffer.length * 2));
			larger.set(this.#buffer.subarray(0, at));
			this.#buffer = larger;
			this.#view = new DataView(larger.buffer);
		}
		return at;
	}
}

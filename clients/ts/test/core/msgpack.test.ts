/** Msgpack against an independent implementation, and input that nobody vouches for. */

import { decode as independentDecode, encode as independentEncode } from "@msgpack/msgpack";
import { describe, expect, it } from "vitest";
import { PayloadError } from "../../src/core/errors.js";
import { MsgpackReader } from "../../src/core/msgpack-reader.js";
import { Extension, type MsgValue, writeValue } from "../../src/core/msgpack-value.js";
import { MsgpackWriter } from "../../src/core/msgpack-writer.js";
import { encodeTagged, TaggedMap } from "../../src/core/tagged.js";

function encode(value: MsgValue): Uint8Array {
	const out = new MsgpackWriter();
	writeValue(out, value);
	return out.bytes();
}

function decode(bytes: Uint8Array): MsgValue {
	const reader = new MsgpackReader(bytes);
	const value = reader.value(0);
	reader.finish();
	return value;
}

/** A number sequence that is the same every time. */
function random(seed: number): () => number {
	let state = seed;
	return () => {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		return state / 2 ** 32;
	};
}

describe("msgpack", () => {
	const scalars = [
		null,
		true,
		false,
		0,
		1.5,
		-0.25,
		"",
		"text",
		"\u{1f600}",
		"\ufefftext with a mark",
		"x".repeat(70_000),
	];
	const integers = [8, 16, 31, 32, 33, 40, 52].flatMap((bits) => [
		2 ** bits - 1,
		2 ** bits,
		-(2 ** bits),
		-(2 ** bits) - 1,
	]);
	const containers = [[], [1, [2, [3]]], Array.from({ length: 70_000 }, () => 1), new Uint8Array(300)];

	it.each([...scalars, ...integers, ...containers].map((value) => [value]))("writes and reads %j", (value) => {
		expect(Buffer.compare(encode(value), independentEncode(value))).toBe(0);
		expect(decode(encode(value))).toEqual(value);
		expect(decode(independentEncode(value))).toEqual(value);
	});

	it.each([2n ** 64n - 1n, 2n ** 63n, -(2n ** 63n)])("writes and reads %s exactly", (value) => {
		expect(decode(encode(value))).toBe(value);
		expect(independentDecode(encode(value), { useBigInt64: true })).toBe(value);
	});

	it.each([1, 2, 3, 4, 8, 16, 17, 300])("writes and reads an extension of %i bytes", (length) => {
		const value = new Extension(-5, new Uint8Array(length).fill(9));
		expect(decode(encode(value))).toEqual(value);
		expect(independentDecode(encode(value))).toMatchObject({ type: -5, data: value.data });
	});

	it.each([
		["an integer of 65 bits", () => encode(2n ** 64n)],
		["a number that is not exact", () => encode(2 ** 53)],
		["a name where a tag belongs", () => encodeTagged({ name: 1 })],
		["values nested 129 deep", () => encode(nested(129))],
	])("refuses to write %s", (_name, write) => {
		expect(write).toThrow();
	});

	it.each([new Date(0), new Set([1]), new ArrayBuffer(2), new Float32Array(2), new TaggedMap(), () => 1, Symbol("x")])(
		"refuses to write what is no msgpack value, rather than an empty map: %o",
		(value) => {
			expect(() => encodeTagged({ 1: value as unknown as MsgValue })).toThrow(/is no msgpack value/);
		},
	);

	it("writes objects without a prototype like any others", () => {
		const bare = Object.assign(Object.create(null) as { [tag: string]: MsgValue }, { 1: 2 });
		expect(Buffer.compare(encode(bare), encode({ 1: 2 }))).toBe(0);
	});

	it.each([
		["a number and a BigInt", 1, 1n],
		["equal bytes", Buffer.of(1), Buffer.of(1)],
	])("refuses two keys that are one on the wire: %s", (_name, one, other) => {
		const twice = new Map<MsgValue, MsgValue>([
			[one, 1],
			[other, 2],
		]);
		expect(() => encode(twice)).toThrow(/occurs twice/);
	});

	it("gives the same bytes for the same value, whatever its order", () => {
		const one = encode(
			new Map<MsgValue, MsgValue>([
				["b", 1],
				["a", 2],
				[10, 3],
				[-1, 4],
				[true, 5],
			]),
		);
		const other = encode(
			new Map<MsgValue, MsgValue>([
				[true, 5],
				[-1, 4],
				["a", 2],
				[10, 3],
				["b", 1],
			]),
		);
		expect(Buffer.compare(one, other)).toBe(0);
	});

	it("refuses or reads any bytes at all, and never anything else", () => {
		const next = random(7);
		for (let round = 0; round < 20_000; round += 1) {
			const bytes = Uint8Array.from({ length: 1 + Math.floor(next() * 24) }, () => Math.floor(next() * 256));
			bytes[0] = 0x80 | ((bytes[0] ?? 0) & 0x0f);
			try {
				TaggedMap.decode(bytes).encode();
			} catch (error) {
				expect(error).toBeInstanceOf(PayloadError);
			}
		}
	});
});

function nested(levels: number): MsgValue {
	let value: MsgValue = 1;
	for (let level = 0; level < levels; level += 1) value = [value];
	return value;
}

/**
 * Msgpack's values as JavaScript's, and how they are written: the same value always has the same bytes.
 *
 * Integers are numbers while they are exact and BigInts beyond; a number with a fraction is a double. What JavaScript
 * cannot tell apart has a class of its own: {@link Float32}, {@link Float64} for a whole number that shall be a float,
 * {@link Extension}, and {@link Raw} for bytes that are msgpack already. Map keys ascend: numbers by value, texts and
 * bytes by their bytes, false before true. Any other value, such as a Date or an instance of a class, is refused rather
 * than written as something else, and so are two keys that are one on the wire, such as 1 and 1n.
 */

import type { MsgpackWriter } from "./msgpack-writer.js";

/** The number of a field. */
export type Tag = number | bigint;

/** A key of a msgpack map. */
export type MsgKey = number | bigint | string | boolean | Uint8Array;

/** A msgpack value. A plain object is a tagged one: its keys are digits. */
export type MsgValue =
	| null
	| boolean
	| number
	| bigint
	| string
	| Uint8Array
	| Float32
	| Float64
	| Extension
	| Raw
	| readonly MsgValue[]
	| ReadonlyMap<MsgKey | MsgValue, MsgValue>
	| { readonly [tag: string]: MsgValue };

/** A float of 4 bytes. */
export class Float32 {
	constructor(readonly value: number) {}
}

/** A float of 8 bytes, whole or not. */
export class Float64 {
	constructor(readonly value: number) {}
}

/** A value of an application's own kind. */
export class Extension {
	constructor(
		/** Its kind, from -128 to 127. */
		readonly kind: number,
		readonly data: Uint8Array,
	) {}
}

/** Bytes that are one msgpack value already, and are written as they are. */
export class Raw {
	constructor(readonly bytes: Uint8Array) {}
}

/** The deepest nesting of maps and arrays, the payload's own map included. */
export const NESTING_MAX = 128;

/** Writes a value. */
export function writeValue(out: MsgpackWriter, value: MsgValue, depth = 0): void {
	if (value === null) out.nil();
	else if (typeof value === "boolean") out.bool(value);
	else if (typeof value === "number") writeNumber(out, value);
	else if (typeof value === "bigint") out.int(value);
	else if (typeof value === "string") out.str(value);
	else if (typeof value === "object") writeObject(out, value, depth);
	else throw new TypeError(`${String(value)} is no msgpack value`);
}

function writeNumber(out: MsgpackWriter, value: number): void {
	if (!Number.isInteger(value) || Object.is(value, -0)) out.f64(value);
	else if (Number.isSafeInteger(value)) out.int(value);
	else throw new RangeError(`${value} is not exact: write a BigInt, or a Float64`);
}

function writeObject(out: MsgpackWriter, value: object, depth: number): void {
	if (value instanceof Uint8Array) out.bin(value);
	else if (value instanceof Float32) out.f32(value.value);
	else if (value instanceof Float64) out.f64(value.value);
	else if (value instanceof Raw) out.raw(value.bytes);
	else if (value instanceof Extension) out.ext(value.kind, value.data);
	else if (depth >= NESTING_MAX) throw new RangeError(`values nest deeper than ${NESTING_MAX} levels`);
	else if (Array.isArray(value)) writeArray(out, value, depth + 1);
	else writeMap(out, value instanceof Map ? value : taggedEntries(value), depth + 1);
}

function writeArray(out: MsgpackWriter, values: readonly MsgValue[], depth: number): void {
	out.array(values.length);
	for (const value of values) writeValue(out, value, depth);
}

function writeMap(out: MsgpackWriter, map: ReadonlyMap<MsgValue, MsgValue>, depth: number): void {
	out.map(map.size);
	for (const [key, value] of sortedEntries(map)) {
		writeValue(out, key, depth);
		writeValue(out, value, depth);
	}
}

/** A map's entries in the order of their keys; throws a `TypeError` if two keys are one on the wire. */
export function sortedEntries<Key, Value>(map: ReadonlyMap<Key, Value>): [Key, Value][] {
	const sorted = [...map].sort(([a], [b]) => compareKeys(a, b));
	const twice = sorted.find(([key], index) => index > 0 && isSameKey(sorted[index - 1]?.[0], key));
	if (twice !== undefined) throw new TypeError(`the key ${String(twice[0])} occurs twice`);
	return sorted;
}

/** A plain object's fields by tag. */
function taggedEntries(value: object): Map<Tag, MsgValue> {
	if (!isPlain(value)) throw new TypeError(`${value.constructor?.name ?? "an object"} is no msgpack value`);
	const fields = new Map<Tag, MsgValue>();
	for (const [key, field] of Object.entries(value) as [string, MsgValue | undefined][]) {
		const tag = tagOf(key);
		if (tag === null) throw new TypeError(`${JSON.stringify(key)} is no tag: a map with other keys is a Map`);
		if (field !== undefined) fields.set(tag, field);
	}
	return fields;
}

/** Whether an object is nothing but its properties, whichever window or frame it comes from. */
function isPlain(value: object): boolean {
	const prototype: unknown = Object.getPrototypeOf(value);
	return prototype === null || Object.getPrototypeOf(prototype) === null;
}

const TAG_TEXT = /^(0|[1-9][0-9]{0,19})$/;
const TAG_MAX = 2n ** 64n - 1n;

/** The tag that a key is: a whole number that is not negative, or one spelt in digits; null if the key is not a tag. */
export function tagOf(key: unknown): Tag | null {
	if (typeof key === "number") return Number.isInteger(key) && key >= 0 ? key : null;
	if (typeof key === "bigint") return key >= 0n ? exact(key) : null;
	if (typeof key !== "string" || !TAG_TEXT.test(key) || BigInt(key) > TAG_MAX) return null;
	return exact(BigInt(key));
}

/** A whole number as a number if that is exact. */
export function exact(value: bigint): number | bigint {
	const number = Number(value);
	return Number.isSafeInteger(number) ? number : value;
}

/** The order of a map's keys. Keys of different kinds: numbers, then texts, then bytes, then the rest. */
export function compareKeys(a: unknown, b: unknown): number {
	const rank = rankOf(a) - rankOf(b);
	if (rank !== 0) return rank;
	if (typeof a === "string" && typeof b === "string") return compareBytes(utf8.encode(a), utf8.encode(b));
	if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b);
	return (a as number) < (b as number) ? -1 : (a as number) > (b as number) ? 1 : 0;
}

/** Whether two keys that a Map tells apart have the same bytes: a number and a BigInt, or two arrays of bytes. */
function isSameKey(a: unknown, b: unknown): boolean {
	const isComparable = !Number.isNaN(a) && !Number.isNaN(b) && rankOf(a) < RANK_OTHER;
	return isComparable && compareKeys(a, b) === 0;
}

const utf8 = new TextEncoder();
const RANK_OTHER = 4;

function rankOf(key: unknown): number {
	if (typeof key === "boolean") return 0;
	if (typeof key === "number" || typeof key === "bigint") return 1;
	if (typeof key === "string") return 2;
	return key instanceof Uint8Array ? 3 : RANK_OTHER;
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
	const common = Math.min(a.length, b.length);
	for (let index = 0; index < common; index += 1) {
		const difference = (a[index] as number) - (b[index] as number);
		if (difference !== 0) return difference;
	}
	return a.length - b.length;
}

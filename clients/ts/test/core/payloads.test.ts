/** The payload vectors: values to bytes, bytes to values by tag and by name, unknown tags kept, malformed refused. */

import { describe, expect, it } from "vitest";
import type { Bundle } from "../../src/core/bundle.js";
import { PayloadError } from "../../src/core/errors.js";
import { Extension, Float32, Float64, type MsgValue, Raw } from "../../src/core/msgpack-value.js";
import { encodeTagged, TaggedMap } from "../../src/core/tagged.js";
import { type TypedRecord, TypeRegistry } from "../../src/core/type-registry.js";
import { fromHex, vectors } from "../testdata.js";

interface Vector {
	readonly name: string;
	readonly type_id: string;
	readonly version: number;
	readonly value?: Notation;
	readonly msgpack: string;
	readonly typed: unknown;
	readonly unknown?: Record<string, unknown>;
	readonly warnings?: unknown;
}

// biome-ignore lint/suspicious/noExplicitAny: the notation is any JSON
type Notation = any;

const registry = new TypeRegistry([vectors<Bundle>("payloads/vectors-bundle.json")]);
const good = vectors<Vector[]>("payloads/vectors.json");
const tolerated = vectors<Vector[]>("payloads/tolerated.json");
const malformed = vectors<{ name: string; msgpack: string; error: string }[]>("payloads/malformed.json");

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const typeOf = ({ type_id, version }: Vector) => ({ id: type_id, version });

/** A value from the vectors' notation. */
function fromNotation(value: Notation): MsgValue {
	if (Array.isArray(value)) return value.map(fromNotation);
	if (typeof value !== "object" || value === null) return value;
	const [[key, inner] = [], ...more] = Object.entries<Notation>(value);
	if (key !== undefined && more.length === 0) {
		if (key === "int") return BigInt(inner);
		if (key === "f32") return new Float32(Number(inner));
		if (key === "f64") return new Float64(Number(inner));
		if (key === "bytes") return fromHex(inner);
		if (key === "raw") return new Raw(fromHex(inner));
		if (key === "map") return new Map(inner.map(([k, v]: [Notation, Notation]) => [fromNotation(k), fromNotation(v)]));
	}
	return Object.fromEntries(Object.entries(value).map(([tag, field]) => [tag, fromNotation(field)]));
}

/** A decoded value as the gateway's typed view shows it by default. */
function toJson(value: unknown): unknown {
	if (typeof value === "bigint") return String(value);
	if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
	if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
	if (value instanceof Extension) return { ext: value.kind, data: toJson(value.data) };
	if (value instanceof Date) return dateJson(value);
	if (Array.isArray(value)) return value.map(toJson);
	if (value instanceof Map) return Object.fromEntries([...value].map(([key, inner]) => [keyJson(key), toJson(inner)]));
	if (typeof value !== "object" || value === null) return value;
	return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, toJson(field)]));
}

function dateJson(date: Date): unknown {
	const year = date.getUTCFullYear();
	return year >= 0 && year <= 9999 ? date.toISOString() : date.getTime();
}

function keyJson(key: unknown): string {
	return String(key instanceof Uint8Array ? toJson(key) : key);
}

/** The gateway shows single floats with fewer digits, and messages differ by language. */
function comparable(value: unknown, name = ""): unknown {
	if (typeof value === "number") return name === "f32" ? Math.fround(value) : value;
	if (Array.isArray(value)) return value.map((inner) => comparable(inner));
	if (typeof value !== "object" || value === null) return value;
	const entries = Object.entries(value).filter(([key]) => key !== "message");
	return Object.fromEntries(entries.map(([key, inner]) => [key, comparable(inner, key)]));
}

function decoded(vector: Vector): TypedRecord {
	return registry.decode(typeOf(vector), fromHex(vector.msgpack));
}

describe("payload vectors", () => {
	it.each(good)("$name: the value gives the bytes", (vector) => {
		expect(hexOf(encodeTagged(fromNotation(vector.value) as { [tag: string]: MsgValue }))).toBe(vector.msgpack);
	});

	it.each(good)("$name: the bytes give the named fields", (vector) => {
		expect(comparable(toJson(decoded(vector)))).toEqual(comparable(vector.typed));
	});

	it.each(good)("$name: decoding by tag and encoding again changes no byte", (vector) => {
		expect(hexOf(TaggedMap.decode(fromHex(vector.msgpack)).encode())).toBe(vector.msgpack);
	});

	// A whole number that was a float says so only if its field does.
	const hasOnlyTypedFloats = good.filter((vector) => !/f64/.test(JSON.stringify(vector.value["1"] ?? "")));

	it.each(hasOnlyTypedFloats)("$name: named fields give the bytes back, unknown ones included", (vector) => {
		expect(hexOf(registry.encode(typeOf(vector), { ...decoded(vector) }))).toBe(vector.msgpack);
	});

	it("every vector but the one with floats in `any` was encoded again", () => {
		expect(good.length - hasOnlyTypedFloats.length).toBe(1);
	});

	it.each(good.filter((vector) => vector.unknown !== undefined))(
		"$name: what is unknown can be looked at",
		(vector) => {
			const map = TaggedMap.decode(fromHex(vector.msgpack));
			const atTop = Object.entries(vector.unknown ?? {}).filter(([tag]) => /^[0-9]+$/.test(tag));
			for (const [tag, shown] of atTop) expect(toJson(map.get(Number(tag)))).toEqual(shown);
		},
	);

	it.each(tolerated)("tolerated: $name", (vector) => {
		expect(comparable(toJson(decoded(vector)))).toEqual(comparable(vector.typed));
	});

	it.each(malformed)("malformed: $name is $error", ({ msgpack, error }) => {
		for (const decode of [
			() => TaggedMap.decode(fromHex(msgpack)),
			() => registry.decode({ id: "vectors.Loose", version: 1 }, fromHex(msgpack)),
		]) {
			expect(refusal(decode)).toBe(error);
		}
	});

	it("every prefix of every vector is refused", () => {
		for (const vector of good) {
			const bytes = fromHex(vector.msgpack);
			for (let length = 0; length < bytes.length; length += 1) {
				expect(refusal(() => TaggedMap.decode(bytes.subarray(0, length)))).toBe(length === 0 ? "empty" : "truncated");
			}
		}
	});
});

function refusal(decode: () => unknown): string {
	try {
		decode();
	} catch (error) {
		if (error instanceof PayloadError) return error.fault;
		throw error;
	}
	return "accepted";
}

describe("a tagged map", () => {
	it("keeps what nobody touched and sorts what was set", () => {
		const map = TaggedMap.decode(fromHex("82cf000000000000000101d90161c0"));
		map.set(5, "five").set(3, 2n ** 63n);
		expect(map.tags()).toEqual([1, 3, 5]);
		expect(map.get(3)).toBe(2n ** 63n);
		expect(map.get(4)).toBeUndefined();
		expect(map.delete(5)).toBe(true);
		expect(hexOf(map.encode())).toBe("83010103cf8000000000000000d90161c0");
	});
});

describe("half a surrogate pair", () => {
	const halves = ["\ud800", "\udfff", "a\ud83d", "\ude00b", "\ude00\ud83d"];

	it.each(halves)("is refused wherever a text goes: %j", (text) => {
		expect(() => encodeTagged({ 1: text })).toThrow(TypeError);
		expect(() => encodeTagged({ 1: new Map([[text, 1]]) })).toThrow(/half a surrogate pair/);
		expect(() => new TaggedMap().set(1, text)).toThrow(TypeError);
		const document = { id: "vectors.Document", version: 1 };
		expect(refusal(() => registry.encode(document, { title: text }))).toBe("wrong_value");
	});

	it("is told from a whole one", () => {
		expect(hexOf(encodeTagged({ 1: "\ud83d\ude00" }))).toBe("8101a4f09f9880");
	});
});

describe("encoding by names refuses", () => {
	const point = { id: "vectors.Point", version: 1 };
	const enums = { id: "vectors.Enums", version: 1 };
	const meanings = { id: "vectors.Meanings", version: 1 };
	const cases: [string, () => unknown, string][] = [
		["a number that the type cannot hold", () => registry.encode(point, { x: 2 ** 31, y: 0 }), "wrong_value"],
		["a fraction in an integer", () => registry.encode(point, { x: 0.5 }), "wrong_value"],
		["a name that the type does not have", () => registry.encode(point, { z: 1 }), "wrong_value"],
		["a label that the enum does not have", () => registry.encode(enums, { role: "nobody" }), "wrong_value"],
		["half a second in seconds", () => registry.encode(meanings, { at_s: new Date(500) }), "wrong_value"],
		["a type that nobody published", () => registry.encode({ id: "nobody", version: 1 }, {}), "unpublished"],
	];
	it.each(cases)("%s", (_name, encode, fault) => {
		expect(refusal(encode)).toBe(fault);
	});
});

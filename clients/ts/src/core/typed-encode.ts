/** From named fields to a payload: the inverse of decoding. The same record always has the same bytes. */

import { PayloadError } from "./errors.js";
import { type MsgKey, type MsgValue, NESTING_MAX, sortedEntries, writeValue } from "./msgpack-value.js";
import { MsgpackWriter } from "./msgpack-writer.js";
import type { Kind, Shape, TypeVersion } from "./shape.js";
import { TaggedMap } from "./tagged.js";
import { type TypedRecord, type TypedValue, type TypeRegistry, UNKNOWN } from "./type-registry.js";

/** Writes a whole payload. */
export function encodeRecord(registry: TypeRegistry, version: TypeVersion, record: TypedRecord): Uint8Array {
	const out = new MsgpackWriter();
	new Encoder(registry).record(out, version, record, { path: "data", depth: 0 });
	return out.bytes();
}

/** The place of a value: its path by names, for messages, and the number of containers around it. */
interface Place {
	readonly path: string;
	readonly depth: number;
}

class Encoder {
	constructor(private readonly registry: TypeRegistry) {}

	record(out: MsgpackWriter, version: TypeVersion, record: TypedRecord, place: Place): void {
		const inside = step(place, "");
		const fields = record[UNKNOWN]?.clone() ?? new TaggedMap();
		for (const [name, value] of Object.entries(record)) {
			const field = version.byName.get(name);
			if (field === undefined)
				throw new PayloadError("wrong_value", `${place.path}.${name} is not a field of its type`);
			if (value === undefined) continue;
			const inner = new MsgpackWriter();
			this.#value(inner, field.shape, value, { ...inside, path: `${place.path}.${name}` });
			fields.setRaw(field.tag, inner.bytes());
		}
		fields.write(out);
	}

	#value(out: MsgpackWriter, shape: Shape, value: TypedValue, place: Place): void {
		const { kind } = shape;
		if (value === null) out.nil();
		else if (kind.name === "any") writeAny(out, value, place);
		else if (kind.name === "int") out.int(this.#int(kind, shape, value, place));
		else if (kind.name === "array" && Array.isArray(value)) this.#array(out, kind.items, value, place);
		else if (kind.name === "map" && value instanceof Map) this.#map(out, kind.value, value, place);
		else if (kind.name === "typed_blob" && isRecord(value)) this.#typedBlob(out, value, place);
		else if (kind.name === "type" && isRecord(value)) this.#nested(out, kind.id, value, place);
		else writeScalar(out, kind, value, place);
	}

	#nested(out: MsgpackWriter, id: string, value: TypedRecord, place: Place): void {
		const version = this.registry.latest(id);
		if (version === undefined) throw new PayloadError("unpublished", `type ${id} of ${place.path} is not published`);
		this.record(out, version, value, place);
	}

	#int(kind: Extract<Kind, { name: "int" }>, shape: Shape, value: TypedValue, place: Place): bigint {
		const number = this.#wholeNumber(shape, value);
		if (number === undefined || number < kind.min || number > kind.max) {
			throw wrong(place, `a whole number from ${kind.min} to ${kind.max}, a label or a Date`, value);
		}
		return number;
	}

	#wholeNumber(shape: Shape, value: TypedValue): bigint | undefined {
		if (typeof value === "bigint") return value;
		if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : undefined;
		if (typeof value === "string") return this.registry.numberOf(shape, value);
		if (!(value instanceof Date) || Number.isNaN(value.getTime())) return undefined;
		const ms = BigInt(value.getTime());
		if (shape.semantic === "unix_ms") return ms;
		return shape.semantic === "unix_s" && ms % 1000n === 0n ? ms / 1000n : undefined;
	}

	#array(out: MsgpackWriter, items: Shape, values: readonly TypedValue[], place: Place): void {
		out.array(values.length);
		values.forEach((value, index) => {
			this.#value(out, items, value, step(place, `[${index}]`));
		});
	}

	#map(out: MsgpackWriter, shape: Shape, map: ReadonlyMap<unknown, TypedValue>, place: Place): void {
		out.map(map.size);
		for (const [key, value] of orWrong(place, () => sortedEntries(map))) {
			const inside = step(place, `[${String(key)}]`);
			writeAny(out, key as MsgKey, inside);
			this.#value(out, shape, value, inside);
		}
	}

	#typedBlob(out: MsgpackWriter, blob: TypedRecord, place: Place): void {
		const { type_id: id, type_version: version, data, bytes } = blob;
		if (typeof id !== "string" || typeof version !== "number" || (data === undefined) === (bytes === undefined)) {
			throw wrong(place, "a typed blob {type_id, type_version, data} or with bytes in place of data", blob);
		}
		out.map(3);
		out.int(1);
		orWrong(step(place, ".type_id"), () => out.str(id));
		out.int(2);
		out.int(version);
		out.int(3);
		out.bin(bytes instanceof Uint8Array ? bytes : this.#inner({ id, version }, data, step(place, ".data")));
	}

	#inner(
		type: { readonly id: string; readonly version: number },
		data: TypedValue | undefined,
		place: Place,
	): Uint8Array {
		const version = this.registry.version(type.id, type.version);
		if (data === undefined || !isRecord(data)) throw wrong(place, "an object by field names", data);
		const out = new MsgpackWriter();
		this.record(out, version, data, place);
		return out.bytes();
	}
}

function writeScalar(out: MsgpackWriter, kind: Kind, value: TypedValue, place: Place): void {
	if (kind.name === "bool" && typeof value === "boolean") out.bool(value);
	else if (kind.name === "string" && typeof value === "string") orWrong(place, () => out.str(value));
	else if (kind.name === "bytes" && value instanceof Uint8Array) out.bin(value);
	else if (kind.name === "f32" && typeof value === "number") out.f32(value);
	else if (kind.name === "f64" && typeof value === "number") out.f64(value);
	else throw wrong(place, `what ${kind.name} holds`, value);
}

/** Writes a value that has no shape. */
function writeAny(out: MsgpackWriter, value: TypedValue, place: Place): void {
	orWrong(place, () => writeValue(out, value as MsgValue, place.depth));
}

/** Returns the result of `make`. Adds the place to an error that it throws. */
function orWrong<T>(place: Place, make: () => T): T {
	try {
		return make();
	} catch (cause) {
		throw new PayloadError("wrong_value", `${place.path} cannot be written: ${(cause as Error).message}`, { cause });
	}
}

/** One container deeper, if that is allowed. */
function step(place: Place, name: string): Place {
	if (place.depth >= NESTING_MAX) {
		throw new PayloadError("too_deep", `the record nests deeper than ${NESTING_MAX} levels`);
	}
	return { path: `${place.path}${name}`, depth: place.depth + 1 };
}

function isRecord(value: TypedValue): value is TypedRecord {
	return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function wrong(place: Place, expected: string, found: unknown): PayloadError {
	const shown = typeof found === "object" ? (found?.constructor?.name ?? "an object") : String(found).slice(0, 64);
	return new PayloadError("wrong_value", `${place.path.slice(0, 512)} must be ${expected}, not ${shown}`);
}

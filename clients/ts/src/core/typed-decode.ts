/** From a payload to named fields: see {@link TypeRegistry} for what becomes what. */

import { PayloadError } from "./errors.js";
import { enter, MsgpackReader, type Token } from "./msgpack-reader.js";
import { type MsgValue, tagOf } from "./msgpack-value.js";
import type { Kind, Shape, TypeVersion } from "./shape.js";
import { TaggedMap } from "./tagged.js";
import { type TypedBlob, type TypedRecord, type TypedValue, type TypeRegistry, UNKNOWN } from "./type-registry.js";

/** The furthest that a Date reaches, both ways. */
const DATE_MS_MAX = 8.64e15;

/** Reads a whole payload. */
export function decodeRecord(registry: TypeRegistry, version: TypeVersion, bytes: Uint8Array, depth = 0): TypedRecord {
	const reader = new MsgpackReader(bytes);
	const count = reader.payload();
	const record = new Decoder(registry, reader).record(version, count, enter(depth));
	reader.finish();
	return record;
}

class Decoder {
	constructor(
		private readonly registry: TypeRegistry,
		private readonly reader: MsgpackReader,
	) {}

	/** The entries of an object whose head was just read. */
	record(version: TypeVersion, count: number, depth: number): TypedRecord {
		const entries = TaggedMap.read(this.reader, count, depth);
		const record: Record<string, TypedValue> & { [UNKNOWN]?: TaggedMap } = {};
		for (const tag of entries.tags()) {
			const field = version.byTag.get(tag);
			if (field === undefined) continue;
			const raw = new MsgpackReader(entries.raw(tag) as Uint8Array);
			setOwn(record, field.name, new Decoder(this.registry, raw).value(field.shape, depth));
			entries.delete(tag);
		}
		if (!entries.isEmpty) record[UNKNOWN] = entries;
		return record;
	}

	value(shape: Shape, depth: number): TypedValue {
		const token = this.reader.token();
		const { kind } = shape;
		if (token.kind === "int" && kind.name === "int") return this.#int(kind, shape, token.value);
		if (token.kind === "array" && kind.name === "array") return this.#array(kind.items, token.count, enter(depth));
		if (token.kind !== "map") return this.#plain(token, depth);
		if (kind.name === "map") return this.#map(kind.value, token.count, enter(depth));
		if (kind.name === "typed_blob") return this.#typedBlob(token.count, enter(depth));
		const version = kind.name === "type" ? this.registry.latest(kind.id) : undefined;
		return version === undefined ? this.#plain(token, depth) : this.record(version, token.count, enter(depth));
	}

	#plain(token: Token, depth: number): MsgValue {
		return this.reader.valueOf(token, depth);
	}

	#int(kind: Extract<Kind, { name: "int" }>, shape: Shape, value: number | bigint): TypedValue {
		if (value < kind.min || value > kind.max) return value;
		if (shape.enumId !== undefined) return this.registry.label(shape, value) ?? value;
		const unixMs = unixMsOf(shape, value);
		if (unixMs !== null && Math.abs(unixMs) <= DATE_MS_MAX) return new Date(unixMs);
		return kind.isWide ? BigInt(value) : value;
	}

	#array(items: Shape, count: number, depth: number): TypedValue[] {
		return Array.from({ length: count }, () => this.value(items, depth));
	}

	#map(shape: Shape, count: number, depth: number): Map<unknown, TypedValue> {
		const map = new Map<unknown, TypedValue>();
		for (let index = 0; index < count; index += 1) map.set(this.reader.value(depth), this.value(shape, depth));
		return map;
	}

	#typedBlob(count: number, depth: number): TypedValue {
		const parts = new Map<unknown, MsgValue>();
		for (let index = 0; index < count; index += 1) {
			const key = this.reader.value(depth);
			parts.set(tagOf(key) ?? key, this.reader.value(depth));
		}
		const [type_id, type_version, bytes] = [parts.get(1), parts.get(2), parts.get(3)];
		const isBlob = typeof type_id === "string" && typeof type_version === "number" && bytes instanceof Uint8Array;
		return isBlob ? this.#inner(type_id, type_version, bytes, depth) : parts;
	}

	#inner(type_id: string, type_version: number, bytes: Uint8Array, depth: number): TypedBlob {
		try {
			const version = this.registry.version(type_id, type_version);
			return { type_id, type_version, data: decodeRecord(this.registry, version, bytes, depth) };
		} catch (error) {
			if (!(error instanceof PayloadError)) throw error;
			const isMissing = error.fault === "unpublished";
			const [code, status] = isMissing ? ["FailedDependency", 424] : ["DecodeError", 500];
			return {
				type_id,
				type_version,
				error: { code: String(code), status: Number(status), message: error.message },
				bytes,
			};
		}
	}
}

/** The instant that a number means; null if it means none. */
function unixMsOf({ semantic }: Shape, value: number | bigint): number | null {
	if (semantic === "unix_ms") return Number(value);
	return semantic === "unix_s" ? Number(value) * 1000 : null;
}

/** Sets a field, whatever its name: `__proto__` too is only a name. */
function setOwn(record: object, name: string, value: TypedValue): void {
	Object.defineProperty(record, name, { value, enumerable: true, writable: true, configurable: true });
}

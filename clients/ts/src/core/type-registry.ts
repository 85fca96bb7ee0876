/**
 * The registry on the reader's side: payloads to named fields and back, by bundles that the program brings.
 *
 * | declared | JavaScript |
 * |---|---|
 * | `u64`, `i64` | BigInt, always |
 * | smaller integers, floats | number |
 * | with an `enum` | its label, or the number if it has none |
 * | `unix_ms`, `unix_s` | Date, as far as dates reach |
 * | `bytes` | Uint8Array |
 * | `map` | Map |
 * | another type | an object; its newest version |
 * | `typed_blob` | `{type_id, type_version, data}`, or `{…, error, bytes}` if it cannot be read |
 *
 * A value that contradicts its descriptor is given as it is. What a version does not name travels along under the
 * symbol {@link UNKNOWN}, through copies made with `...` too, and is written back byte for byte.
 */

import type { Bundle, EnumDescriptor } from "./bundle.js";
import { PayloadError } from "./errors.js";
import type { MsgValue } from "./msgpack-value.js";
import { type Shape, type TypeVersion, typeVersion } from "./shape.js";
import type { TaggedMap } from "./tagged.js";
import { decodeRecord } from "./typed-decode.js";
import { encodeRecord } from "./typed-encode.js";

/** Where a record keeps the fields that its type's version does not name. */
export const UNKNOWN: unique symbol = Symbol("turnkeep.unknown");

/** An object by field names. */
export interface TypedRecord {
	readonly [name: string]: TypedValue | undefined;
	readonly [UNKNOWN]?: TaggedMap;
}

/** A payload inside a payload. */
export type TypedBlob = {
	readonly type_id: string;
	readonly type_version: number;
} & (
	| { readonly data: TypedRecord }
	| {
			readonly bytes: Uint8Array;
			/** Why it could not be read. */
			readonly error?: { readonly code: string; readonly status: number; readonly message: string };
	  }
);

/** What a named field holds. */
export type TypedValue =
	| MsgValue
	| Date
	| TypedBlob
	| TypedRecord
	| readonly TypedValue[]
	| ReadonlyMap<unknown, TypedValue>;

/** The labels of an enum, both ways. */
interface EnumTable {
	readonly labels: ReadonlyMap<string, string>;
	readonly numbers: ReadonlyMap<string, bigint>;
}

/** Types and enums of some bundles. */
export class TypeRegistry {
	readonly #types = new Map<string, Map<number, TypeVersion>>();
	readonly #enums = new Map<string, EnumTable>();

	/** Takes the bundles in the order in which they were published. */
	constructor(bundles: readonly Bundle[] = []) {
		for (const bundle of bundles) this.add(bundle);
	}

	/** Takes one more bundle. */
	add(bundle: Bundle): void {
		const isType = (name: string) => Object.hasOwn(bundle.types, name) || this.#types.has(name);
		for (const [id, { versions }] of Object.entries(bundle.types)) {
			const known = this.#types.get(id) ?? new Map<number, TypeVersion>();
			for (const [version, { fields }] of Object.entries(versions))
				known.set(Number(version), typeVersion(fields, isType));
			this.#types.set(id, known);
		}
		for (const [id, labels] of Object.entries(bundle.enums ?? {})) this.#enums.set(id, enumTable(labels));
	}

	/** A payload by field names; throws a `PayloadError` if the bytes are not a payload or the type is not published. */
	decode(type: { readonly id: string; readonly version: number }, bytes: Uint8Array): TypedRecord {
		return decodeRecord(this, this.version(type.id, type.version), bytes);
	}

	/** A payload from field names; throws a `PayloadError` if a value does not fit or the type is not published. */
	encode(type: { readonly id: string; readonly version: number }, record: TypedRecord): Uint8Array {
		return encodeRecord(this, this.version(type.id, type.version), record);
	}

	/** @internal A version of a type. */
	version(id: string, version: number): TypeVersion {
		const found = this.#types.get(id)?.get(version);
		if (found === undefined) throw new PayloadError("unpublished", `type ${id}@${version} is not published`);
		return found;
	}

	/** @internal The newest version of a type; undefined if it is not published. */
	latest(id: string): TypeVersion | undefined {
		const versions = this.#types.get(id);
		return versions?.get(Math.max(...versions.keys()));
	}

	/** @internal The label of a number in a shape. */
	label(shape: Shape, value: number | bigint): string | undefined {
		return shape.enumId === undefined ? undefined : this.#enums.get(shape.enumId)?.labels.get(String(value));
	}

	/** @internal The number of a label in a shape. */
	numberOf(shape: Shape, label: string): bigint | undefined {
		return shape.enumId === undefined ? undefined : this.#enums.get(shape.enumId)?.numbers.get(label);
	}
}

function enumTable(descriptor: EnumDescriptor): EnumTable {
	const entries = Object.entries(descriptor);
	return {
		labels: new Map(entries),
		numbers: new Map(entries.map(([number, label]) => [label, BigInt(number)])),
	};
}

/** What a field's descriptor says, in a form that decoding and encoding can follow. */

import type { FieldDescriptor } from "./bundle.js";
import { type Tag, tagOf } from "./msgpack-value.js";

/** The type of a value and its meaning. */
export interface Shape {
	readonly kind: Kind;
	readonly semantic: string | undefined;
	readonly enumId: string | undefined;
}

export type Kind =
	| { readonly name: "bool" | "f32" | "f64" | "string" | "bytes" | "typed_blob" | "any" }
	| { readonly name: "int"; readonly min: bigint; readonly max: bigint; readonly isWide: boolean }
	| { readonly name: "array"; readonly items: Shape }
	| { readonly name: "map"; readonly value: Shape }
	| { readonly name: "type"; readonly id: string };

/** A field of a type. */
export interface Field {
	readonly tag: Tag;
	readonly name: string;
	readonly shape: Shape;
}

/** A version of a type, by tag and by name. Retired tags are in neither. */
export interface TypeVersion {
	readonly byTag: ReadonlyMap<Tag, Field>;
	readonly byName: ReadonlyMap<string, Field>;
}

const PLAIN = ["bool", "f32", "f64", "string", "bytes", "typed_blob", "any"] as const;

/** Says whether a name is a type's id. Such a name means that type, also where it is another spelling of a built-in. */
export type IsType = (name: string) => boolean;

/** Reads a version's descriptors; throws a `TypeError` if they are malformed. */
export function typeVersion(descriptors: Readonly<Record<string, FieldDescriptor>>, isType: IsType): TypeVersion {
	const byTag = new Map<Tag, Field>();
	const byName = new Map<string, Field>();
	for (const [key, descriptor] of Object.entries(descriptors)) {
		const tag = tagOf(key);
		if (tag === null) throw new TypeError(`${JSON.stringify(key)} is no tag`);
		if (descriptor.tombstone === true) continue;
		if (descriptor.name === undefined) throw new TypeError(`the field with tag ${key} has no name`);
		const field = { tag, name: descriptor.name, shape: shapeOf(descriptor, isType) };
		byTag.set(tag, field);
		byName.set(field.name, field);
	}
	return { byTag, byName };
}

function shapeOf(descriptor: FieldDescriptor, isType: IsType): Shape {
	return { kind: kindOf(descriptor, isType), semantic: descriptor.semantic, enumId: descriptor.enum };
}

function kindOf(descriptor: FieldDescriptor, isType: IsType): Kind {
	const { type } = descriptor;
	if (type === undefined) throw new TypeError("a descriptor has no type");
	if (type === "array") return { name: "array", items: itemShape(descriptor, isType) };
	if (type === "map") return { name: "map", value: partShape(descriptor.value_type, isType) };
	if (type === "ref" && descriptor.ref !== undefined && !isType("ref")) return namedKind(descriptor.ref, isType);
	return namedKind(type, isType);
}

/** An array's items. Named by their type alone, they take the array's own semantic and enum. */
function itemShape(array: FieldDescriptor, isType: IsType): Shape {
	if (typeof array.items !== "string") return partShape(array.items, isType);
	return { kind: namedKind(array.items, isType), semantic: array.semantic, enumId: array.enum };
}

function partShape(part: string | FieldDescriptor | undefined, isType: IsType): Shape {
	if (part === undefined) throw new TypeError("an array or a map does not say what it holds");
	if (typeof part !== "string") return shapeOf(part, isType);
	return { kind: namedKind(part, isType), semantic: undefined, enumId: undefined };
}

function namedKind(type: string, isType: IsType): Kind {
	const plain = PLAIN.find((name) => name === type);
	if (plain !== undefined) return { name: plain };
	const int = isType(type) ? null : /^(?:([iu])(8|16|32|64)|int(32|64))$/.exec(type);
	if (int === null) return { name: "type", id: type };
	const bits = BigInt((int[2] ?? int[3]) as string);
	const isSigned = int[1] !== "u";
	const min = isSigned ? -(2n ** (bits - 1n)) : 0n;
	const max = (isSigned ? 2n ** (bits - 1n) : 2n ** bits) - 1n;
	return { name: "int", min, max, isWide: bits === 64n };
}

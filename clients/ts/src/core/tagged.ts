/**
 * Payloads by tag, without a registry: a field is decoded when it is accessed, and every field that is not changed
 * comes back out with the very bytes that it came in with.
 */

import { enter, MsgpackReader } from "./msgpack-reader.js";
import { compareKeys, type MsgValue, type Tag, tagOf, writeValue } from "./msgpack-value.js";
import { MsgpackWriter } from "./msgpack-writer.js";

/** An entry whose key is no tag, as it came. */
interface Foreign {
	readonly key: Uint8Array;
	readonly value: Uint8Array;
}

/** A payload's fields by tag. */
export class TaggedMap {
	readonly #fields = new Map<Tag, Uint8Array>();
	readonly #foreign: Foreign[] = [];

	/** Reads a payload; throws a `PayloadError` if the bytes are not one. If a tag occurs twice, the last one counts. */
	static decode(bytes: Uint8Array): TaggedMap {
		const reader = new MsgpackReader(bytes);
		const map = TaggedMap.read(reader, reader.payload(), enter(0));
		reader.finish();
		return map;
	}

	/** @internal Reads the entries of a map whose head was just read. */
	static read(reader: MsgpackReader, count: number, depth: number): TaggedMap {
		const map = new TaggedMap();
		for (let index = 0; index < count; index += 1) {
			const start = reader.position;
			const tag = tagOf(reader.value(depth));
			const key = reader.since(start);
			const middle = reader.position;
			reader.skip(depth);
			if (tag === null) map.#foreign.push({ key, value: reader.since(middle) });
			else map.#fields.set(tag, reader.since(middle));
		}
		return map;
	}

	/** The tags, ascending. */
	tags(): Tag[] {
		return [...this.#fields.keys()].sort(compareKeys);
	}

	/** A field's value; undefined if it is absent. 64-bit integers beyond 2^53 are BigInts. */
	get(tag: Tag): MsgValue | undefined {
		const raw = this.#fields.get(tag);
		return raw === undefined ? undefined : new MsgpackReader(raw).value(1);
	}

	/** A field's msgpack; undefined if it is absent. */
	raw(tag: Tag): Uint8Array | undefined {
		return this.#fields.get(tag);
	}

	/** Sets a field. */
	set(tag: Tag, value: MsgValue): this {
		const out = new MsgpackWriter();
		writeValue(out, value, 1);
		this.#fields.set(tag, out.bytes());
		return this;
	}

	/** @internal Sets a field that is msgpack already. */
	setRaw(tag: Tag, raw: Uint8Array): void {
		this.#fields.set(tag, raw);
	}

	/** Removes a field. Returns whether it existed. */
	delete(tag: Tag): boolean {
		return this.#fields.delete(tag);
	}

	/** @internal Whether it has no entry at all, with a tag or without. */
	get isEmpty(): boolean {
		return this.#fields.size === 0 && this.#foreign.length === 0;
	}

	/** @internal A copy that can be changed by itself. */
	clone(): TaggedMap {
		const copy = new TaggedMap();
		for (const [tag, raw] of this.#fields) copy.#fields.set(tag, raw);
		copy.#foreign.push(...this.#foreign);
		return copy;
	}

	/** The payload: tags ascending, then what has other keys. */
	encode(): Uint8Array {
		const out = new MsgpackWriter();
		this.write(out);
		return out.bytes();
	}

	/** @internal */
	write(out: MsgpackWriter): void {
		out.map(this.#fields.size + this.#foreign.length);
		for (const tag of this.tags()) {
			out.int(tag);
			out.raw(this.#fields.get(tag) as Uint8Array);
		}
		for (const { key, value } of this.#foreign) {
			out.raw(key);
			out.raw(value);
		}
	}
}

/** A payload from its fields: `encodeTagged({ 1: "user", 2: "hello" })`. */
export function encodeTagged(fields: { readonly [tag: string]: MsgValue }): Uint8Array {
	const out = new MsgpackWriter();
	writeValue(out, fields);
	return out.bytes();
}

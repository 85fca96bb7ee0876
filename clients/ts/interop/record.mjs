/** `interop.Record`: `{1: text, 2: count, 3: change, 4: bytes}`, empty fields left out. */

import { encodeTagged, TaggedMap } from "../dist/core/index.js";

/** The payload of a record as the case file has it. */
export function encodeRecord({ text, count, change, bytes }) {
	const fields = {};
	if (text !== "") fields[1] = text;
	if (count !== "0") fields[2] = BigInt(count);
	if (change !== "0") fields[3] = BigInt(change);
	if (bytes !== "") fields[4] = Buffer.from(bytes, "hex");
	return encodeTagged(fields);
}

/** A payload's record as the driver compares it. */
export function decodeRecord(payload) {
	const fields = TaggedMap.decode(payload);
	return {
		text: fields.get(1) ?? "",
		count: String(fields.get(2) ?? 0),
		change: String(fields.get(3) ?? 0),
		bytes: Buffer.from(fields.get(4) ?? []).toString("hex"),
	};
}

/** The payload with every known field decoded and written again, and the unknown ones as they came. */
export function reencode(payload) {
	const fields = TaggedMap.decode(payload);
	for (const tag of [1, 2, 3, 4]) {
		const value = fields.get(tag);
		if (value !== undefined) fields.set(tag, value);
	}
	return Buffer.from(fields.encode());
}

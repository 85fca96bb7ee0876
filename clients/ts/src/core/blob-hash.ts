/** The names of blobs: BLAKE3-256 of the uncompressed bytes, as 64 lower-case hex digits. */

import { blake3 } from "./blake3.js";
import { HashMismatchError } from "./errors.js";

declare const brand: unique symbol;

/** The hash that names a blob. Made by {@link blobHash} or {@link hashOf}, or received from a server. */
export type BlobHash = string & { readonly [brand]: "BlobHash" };

/** The bytes of a hash on the wire. */
export const HASH_BYTES = 32;

const HASH_TEXT = /^[0-9a-f]{64}$/;

/** Parses the text form of a hash; throws a `TypeError` for any other text. */
export function blobHash(text: string): BlobHash {
	if (!HASH_TEXT.test(text)) throw new TypeError(`not a blob hash: ${text.slice(0, 80)}`);
	return text as BlobHash;
}

/** The hash of these bytes. */
export function hashOf(bytes: Uint8Array): BlobHash {
	return hex(blake3(bytes)) as BlobHash;
}

/** Throws a {@link HashMismatchError} unless the bytes have this hash. */
export function verifyHash(expected: BlobHash, bytes: Uint8Array): void {
	const actual = hashOf(bytes);
	if (actual !== expected) throw new HashMismatchError(expected, actual);
}

const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Bytes as lower-case hex. */
export function hex(bytes: Uint8Array): string {
	let text = "";
	for (const byte of bytes) text += DIGITS[byte];
	return text;
}

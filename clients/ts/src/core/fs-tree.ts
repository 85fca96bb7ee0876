/**
 * Filesystem trees: a directory is a msgpack array of maps `{1: name, 2: kind, 3: mode, 4: size, 5: hash}`. A tag is an
 * integer or its digit as a text, as other programs write it. Nothing in a tree is trusted: bytes that are no tree are a
 * {@link PayloadError}.
 */

import { type BlobHash, blobHash, HASH_BYTES, hex } from "./blob-hash.js";
import { PayloadError } from "./errors.js";
import { MsgpackReader, textOf } from "./msgpack-reader.js";

/** What an entry of a directory is. */
export type TreeEntryKind = "file" | "directory" | "symlink";

/** One entry of a directory. */
export interface TreeEntry {
	/** One path element; bytes where it is not UTF-8. */
	readonly name: string | Uint8Array;
	readonly kind: TreeEntryKind;
	/** The permission bits, with setuid, setgid and sticky. */
	readonly mode: number;
	/** The size that the writer recorded. */
	readonly size: bigint;
	/** The blob of the file's content, the directory's tree or the symlink's target. */
	readonly hash: BlobHash;
}

/** The most entries of one directory that are read. */
const ENTRIES_MAX = 100_000;
const MODE_BITS = 0o7777;
const MODE_MAX = 0xffff_ffff;
const KINDS = ["file", "directory", "symlink"] as const;

/** Reads a directory's blob; throws a `PayloadError` if it is no tree. */
export function decodeTree(bytes: Uint8Array): TreeEntry[] {
	const reader = new MsgpackReader(bytes);
	const head = reader.token();
	if (head.kind !== "array") throw badTree("it is not an array");
	if (head.count > ENTRIES_MAX) throw badTree(`it has ${head.count} entries, more than ${ENTRIES_MAX}`);
	const entries = Array.from({ length: head.count }, () => readEntry(reader));
	reader.finish();
	return entries;
}

function badTree(what: string): PayloadError {
	return new PayloadError("not_a_tree", `the blob is no filesystem tree: ${what}`);
}

function readEntry(reader: MsgpackReader): TreeEntry {
	const head = reader.token();
	if (head.kind !== "map") throw badTree("an entry is not a map");
	let name: string | Uint8Array | undefined;
	let hash: BlobHash | undefined;
	let kind: TreeEntryKind = "file";
	let mode = 0;
	let size = 0n;
	for (let index = 0; index < head.count; index += 1) {
		switch (readTag(reader)) {
			case 1:
				name = textOf(readBytes(reader, "name"));
				break;
			case 2:
				kind = readKind(reader);
				break;
			case 3:
				mode = readMode(reader);
				break;
			case 4:
				size = readNumber(reader, "size");
				break;
			case 5:
				hash = readHash(reader);
				break;
			default:
				throw badTree("an entry has a bad tag");
		}
	}
	if (name === undefined || hash === undefined) throw badTree("an entry has no name or no hash");
	return { name, kind, mode, size, hash };
}

/** A tag as an integer or as its digit. All tags have one digit, so "01" is not a tag. */
function readTag(reader: MsgpackReader): number {
	const token = reader.token();
	if (token.kind === "int") return Number(token.value);
	const text = token.kind === "str" ? textOf(token.bytes) : undefined;
	if (typeof text === "string" && /^[0-9]$/.test(text)) return Number(text);
	throw badTree("an entry has a bad tag");
}

function readNumber(reader: MsgpackReader, what: string): bigint {
	const token = reader.token();
	if (token.kind !== "int" || token.value < 0) throw badTree(`an entry has a bad ${what}`);
	return BigInt(token.value);
}

function readKind(reader: MsgpackReader): TreeEntryKind {
	const kind = KINDS[Number(readNumber(reader, "kind"))];
	if (kind === undefined) throw badTree("an entry has a bad kind");
	return kind;
}

function readMode(reader: MsgpackReader): number {
	const mode = readNumber(reader, "mode");
	if (mode > MODE_MAX) throw badTree("an entry has a bad mode");
	return Number(mode) & MODE_BITS;
}

function readBytes(reader: MsgpackReader, what: string): Uint8Array {
	const token = reader.token();
	if (token.kind !== "str" && token.kind !== "bin") throw badTree(`an entry has a bad ${what}`);
	return token.bytes;
}

function readHash(reader: MsgpackReader): BlobHash {
	const bytes = readBytes(reader, "hash");
	if (bytes.length !== HASH_BYTES) throw badTree("an entry has a bad hash");
	return blobHash(hex(bytes));
}

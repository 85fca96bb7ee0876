/** Unpacks a zip file, which Node cannot do by itself. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { inflateRawSync } from "node:zlib";

const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const DEFLATED = 8;

/** Writes the files of an archive below a folder. */
export function unpackZip(file: string, folder: string): void {
	const zip = readFileSync(file);
	const end = zip.lastIndexOf(Uint8Array.of(0x50, 0x4b, 0x05, 0x06));
	if (end < 0 || zip.readUInt32LE(end) !== END_OF_DIRECTORY) throw new Error(`${file} is no zip file`);
	let at = zip.readUInt32LE(end + 16);
	for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
		if (zip.readUInt32LE(at) !== DIRECTORY_ENTRY) throw new Error(`${file} has no entry at ${at}`);
		const nameEnd = at + 46 + zip.readUInt16LE(at + 28);
		const name = zip.toString("utf8", at + 46, nameEnd);
		const path = normalize(join(folder, name));
		if (!path.startsWith(normalize(`${folder}/`))) throw new Error(`${name} leads out of the archive`);
		mkdirSync(dirname(path), { recursive: true });
		if (!name.endsWith("/")) writeFileSync(path, contentOf(zip, at));
		at = nameEnd + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
	}
}

/** The bytes of the file that an entry of the directory names. */
function contentOf(zip: Buffer, entry: number): Buffer {
	const local = zip.readUInt32LE(entry + 42);
	const begin = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
	const stored = zip.subarray(begin, begin + zip.readUInt32LE(entry + 20));
	return zip.readUInt16LE(entry + 10) === DEFLATED ? inflateRawSync(stored) : stored;
}

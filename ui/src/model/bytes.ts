/** Bytes: from base64, as rows of hex, and what they may be. */

export function bytesFromBase64(text: string): Uint8Array<ArrayBuffer> {
	const binary = atob(text);
	const bytes = new Uint8Array(binary.length);
	for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
	return bytes;
}

export interface HexRow {
	readonly offset: string;
	readonly hex: string;
	/** The printable ASCII characters, and a dot for every other byte. */
	readonly text: string;
}

/** One row of a hex view: `00000010  68 65 6c 6c 6f  hello`. */
export function hexRow(bytes: Uint8Array, row: number, width: number): HexRow {
	const start = row * width;
	const part = Array.from(bytes.subarray(start, start + width));
	return {
		offset: start.toString(16).padStart(8, "0"),
		hex: part
			.map((byte) => byte.toString(16).padStart(2, "0"))
			.join(" ")
			.padEnd(width * 3 - 1),
		text: part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join(""),
	};
}

/** Images that a browser shows without running anything. SVG is not among them: it is a document. */
const IMAGE_HEADS: readonly (readonly [type: string, head: readonly number[], at: number])[] = [
	["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], 0],
	["image/jpeg", [0xff, 0xd8, 0xff], 0],
	["image/gif", [0x47, 0x49, 0x46, 0x38], 0],
	["image/webp", [0x57, 0x45, 0x42, 0x50], 8],
];

/** The type of an image by its first bytes; null if it is none that can be shown. */
export function imageType(bytes: Uint8Array): string | null {
	const found = IMAGE_HEADS.find(([, head, at]) => head.every((byte, index) => bytes[at + index] === byte));
	return found?.[0] ?? null;
}

/** The text of UTF-8 bytes; null if they are not UTF-8, or hold a NUL as only binary data does. */
export function textOfBytes(bytes: Uint8Array): string | null {
	try {
		const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
		return text.includes("\0") ? null : text;
	} catch {
		return null;
	}
}

/** The value of a JSON text that is an object or a list; undefined if it is none. */
export function jsonOfText(text: string): unknown {
	if (!/^\s*[[{]/.test(text)) return undefined;
	try {
		return JSON.parse(text) as unknown;
	} catch {
		return undefined;
	}
}

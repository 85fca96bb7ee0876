/** A blob's first bytes: enough to look at it, however large it is. */

import { queryOptions } from "@tanstack/react-query";
import { request } from "../../api/http";
import { keys } from "../../api/keys";
import { imageType, jsonOfText, textOfBytes } from "../../model/bytes";

/** Larger blobs are shown up to here, and downloaded whole. */
export const SHOWN_BYTES_MAX = 8 << 20;

export interface BlobHead {
	readonly bytes: Uint8Array<ArrayBuffer>;
	/** The length of the whole blob. */
	readonly length: number;
}

export const blobPath = (hash: string) => `/v1/blobs/${encodeURIComponent(hash)}`;

export const blobQuery = (hash: string) =>
	queryOptions({
		queryKey: keys.blob(hash),
		// Its name is its content.
		staleTime: Number.POSITIVE_INFINITY,
		queryFn: async ({ signal }): Promise<BlobHead> => {
			const about = await request(blobPath(hash), { method: "HEAD", signal });
			const length = Number(about.headers.get("content-length") ?? "0");
			// An empty blob has no range.
			const headers: HeadersInit = length > SHOWN_BYTES_MAX ? { range: `bytes=0-${SHOWN_BYTES_MAX - 1}` } : {};
			const response = await request(blobPath(hash), { headers, signal });
			const bytes = new Uint8Array(await response.arrayBuffer());
			return { bytes, length: Math.max(length, bytes.length) };
		},
	});

export type BlobForm = "text" | "json" | "image" | "hex";

export type BlobContent =
	| { readonly form: "text"; readonly text: string }
	| { readonly form: "json"; readonly value: unknown }
	| { readonly form: "image"; readonly type: string }
	| { readonly form: "hex" };

/** Every form that the bytes have, the most telling one first. Hex is always the last. */
export function blobContents({ bytes, length }: BlobHead): BlobContent[] {
	const isWhole = bytes.length === length;
	const image = isWhole ? imageType(bytes) : null;
	if (image !== null) return [{ form: "image", type: image }, { form: "hex" }];
	const text = textOfBytes(isWhole ? bytes : wholeCharacters(bytes));
	if (text === null) return [{ form: "hex" }];
	const value = isWhole ? jsonOfText(text) : undefined;
	const json: BlobContent[] = value === undefined ? [] : [{ form: "json", value }];
	return [...json, { form: "text", text }, { form: "hex" }];
}

/** Without a character of UTF-8 that was cut off at the end. */
function wholeCharacters(bytes: Uint8Array): Uint8Array {
	let end = bytes.length;
	while (end > 0 && ((bytes[end - 1] ?? 0) & 0xc0) === 0x80) end -= 1;
	return bytes.subarray(0, Math.max(0, end - 1));
}

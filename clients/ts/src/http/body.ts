/** Reads a response's body up to a bound: a server that sends more is not believed. */

import { ProtocolError } from "../core/errors.js";

/** The whole body; throws a `ProtocolError` if it is longer than `bytesMax`. */
export async function readBytes(response: Response, bytesMax: number): Promise<Uint8Array> {
	if (response.body === null) return new Uint8Array(0);
	const reader = response.body.getReader();
	const pieces: Uint8Array[] = [];
	let bytes = 0;
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return join(pieces, bytes);
		bytes += value.length;
		if (bytes > bytesMax) {
			await reader.cancel();
			throw new ProtocolError("frame_too_long", `an answer of more than ${bytesMax} bytes`);
		}
		pieces.push(value);
	}
}

function join(pieces: readonly Uint8Array[], bytes: number): Uint8Array {
	if (pieces.length === 1) return pieces[0] as Uint8Array;
	const joined = new Uint8Array(bytes);
	let at = 0;
	for (const piece of pieces) {
		joined.set(piece, at);
		at += piece.length;
	}
	return joined;
}

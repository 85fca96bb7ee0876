/** A turn's payload as its writer made it, whichever form it came in. */

import { verifyHash } from "../core/blob-hash.js";
import { decompressZstd } from "../core/zstd.js";
import type { TurnContent } from "../wire/turns.js";

/** The uncompressed payload. Throws a `PayloadError` if it does not decompress to what the turn says. */
export function payloadOf(turn: TurnContent): Uint8Array {
	if (turn.compression === "none") return turn.payload;
	return decompressZstd(turn.payload, turn.uncompressedLength);
}

/** Throws unless the payload has its hash. It throws for a turn that was read without its payload, too. */
export function verifyTurn(turn: TurnContent): void {
	verifyHash(turn.hash, payloadOf(turn));
}

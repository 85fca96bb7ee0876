/**
 * Memory for the frames that are kept, cut from larger pieces.
 *
 * Asking the system for the memory of every page costs more than reading the page. Invariant: no two frames overlap,
 * and the returned parts are never written again. Code that keeps a part of a medium-sized frame keeps its whole piece;
 * a small frame is not put there, so that keeping little keeps little.
 */

const SLAB_BYTES = 1 << 20;
/** Smaller frames go where Node puts small buffers, larger ones have memory of their own. */
const SHARED_BYTES_MIN = 32 << 10;
const SHARED_BYTES_MAX = SLAB_BYTES / 2;

export class Slab {
	#piece: Buffer | null = null;
	#taken = 0;

	/** Room for so many bytes, with anything in it. */
	take(bytes: number): Buffer {
		if (bytes < SHARED_BYTES_MIN || bytes > SHARED_BYTES_MAX) return Buffer.allocUnsafe(bytes);
		if (this.#piece === null || this.#taken + bytes > SLAB_BYTES) {
			this.#piece = Buffer.allocUnsafeSlow(SLAB_BYTES);
			this.#taken = 0;
		}
		const at = this.#taken;
		this.#taken += bytes;
		return this.#piece.subarray(at, at + bytes);
	}
}

/** Pauses between tries: doubling, bounded, and jittered so that many clients do not return in step. */

/** How often the client tries again, and with which pauses. It repeats only requests that are safe to repeat. */
export interface RetryPolicy {
	/** Tries after the first one; 0 means no retry. A subscription that lasted for `longestMs` counts again from 0. */
	readonly attemptsMax: number;
	/** The longest first pause; each pause is drawn from half of its length to the whole. */
	readonly firstMs: number;
	/** The longest pause at all. */
	readonly longestMs: number;
}

/** What is used unless something else is asked for. */
export const DEFAULT_RETRY: RetryPolicy = { attemptsMax: 8, firstMs: 50, longestMs: 3000 };

/** Counts the tries of one request. */
export class Backoff {
	#tries = 0;
	/** When the server accepted the current try; null before that. */
	#acceptedAt: number | null = null;

	constructor(
		private readonly policy: RetryPolicy,
		private readonly random: () => number = Math.random,
	) {}

	/** The pause before the next try in milliseconds; none when there is no next try. */
	next(): number | undefined {
		if (this.#acceptedAt !== null && performance.now() - this.#acceptedAt >= this.policy.longestMs) this.#tries = 0;
		this.#acceptedAt = null;
		if (this.#tries >= this.policy.attemptsMax) return undefined;
		const doubled = this.policy.firstMs * 2 ** Math.min(this.#tries, 20);
		this.#tries += 1;
		const half = Math.min(doubled, this.policy.longestMs) / 2;
		return half + half * this.random();
	}

	/** Waits before the next try; false if no try is left. Rejects with the signal's reason on abort. */
	async pause(signal?: AbortSignal): Promise<boolean> {
		const ms = this.next();
		if (ms === undefined) return false;
		await sleep(ms, signal);
		return true;
	}

	/** Notes that the server accepted the try. If it lasts, its loss counts as a new failure, not as a repetition. */
	accepted(): void {
		this.#acceptedAt = performance.now();
	}

	/** Starts counting again, after something went well. */
	reset(): void {
		this.#tries = 0;
	}
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
	return new Promise((resolve, reject) => {
		if (signal?.aborted) return reject(signal.reason);
		const stop = () => {
			clearTimeout(timer);
			reject(signal?.reason);
		};
		const timer = setTimeout(() => {
			signal?.removeEventListener("abort", stop);
			resolve();
		}, ms);
		signal?.addEventListener("abort", stop, { once: true });
	});
}

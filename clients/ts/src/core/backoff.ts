/** Pauses between tries: doubling, bounded, and jittered so that many clients do not return in step. */

/** How often and how patiently to try again. Only what is safe to repeat is repeated. */
export interface RetryPolicy {
	/** Tries after the first one; 0 gives up at once. What is followed counts anew once it lasted for `longestMs`. */
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
	/** When what is tried was accepted; null while it is not. */
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

	/** Waits before the next try; false when there is none. Rejects with the signal's reason on abort. */
	async pause(signal?: AbortSignal): Promise<boolean> {
		const ms = this.next();
		if (ms === undefined) return false;
		await sleep(ms, signal);
		return true;
	}

	/** Notes that what was tried works now. If that lasts, its loss is a new misfortune, and not the last one again. */
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

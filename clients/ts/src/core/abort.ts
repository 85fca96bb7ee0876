/** Waiting that a signal can end. */

/** The promise's outcome, or the signal's reason if that comes first. Leaves no listener behind. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
	if (signal === undefined) return promise;
	return new Promise((resolve, reject) => {
		const stop = () => reject(signal.reason);
		if (signal.aborted) return stop();
		signal.addEventListener("abort", stop, { once: true });
		promise.finally(() => signal.removeEventListener("abort", stop)).then(resolve, reject);
	});
}

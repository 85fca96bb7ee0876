/** One thing that is fetched, and fetched again when somebody says that it may have changed. */

import { Store } from "./store.js";

/** What a screen shows of it. */
export interface ResourceState<T> {
	/** The thing; undefined until it is here. */
	readonly data: T | undefined;
	/** Whether it is on its way. */
	readonly isLoading: boolean;
	/** What went wrong last; null if nothing did. */
	readonly error: unknown;
}

export class Resource<T> extends Store<ResourceState<T>> {
	/** Counts the fetches, so that an answer which was overtaken is dropped. */
	#fetches = 0;

	/** `watch` says when to fetch again. */
	constructor(
		private readonly fetch: (signal: AbortSignal) => Promise<T>,
		private readonly watch?: (refresh: () => void, fail: (error: unknown) => void, signal: AbortSignal) => void,
	) {
		super({ data: undefined, isLoading: true, error: null });
	}

	protected override start(signal: AbortSignal): void {
		void this.#refresh(signal);
		this.watch?.(
			() => void this.#refresh(signal),
			(error) => this.update(signal, { error, isLoading: false }),
			signal,
		);
	}

	async #refresh(signal: AbortSignal): Promise<void> {
		this.#fetches += 1;
		const fetch = this.#fetches;
		const change = await this.fetch(signal).then(
			(data) => ({ data, isLoading: false, error: null }),
			(error: unknown) => ({ isLoading: false, error }),
		);
		if (fetch === this.#fetches) this.update(signal, change);
	}
}

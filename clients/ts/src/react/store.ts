/**
 * State outside of React that lives while somebody watches it: what every hook here subscribes to.
 *
 * The first watcher starts the work, the last one to go stops it; a store that was stopped starts afresh, as StrictMode
 * and remounting demand. Invariant: after the stop nothing changes the state, and the work's signal is aborted.
 */

export abstract class Store<State> {
	readonly #listeners = new Set<() => void>();
	#state: State;
	#work: AbortController | null = null;

	protected constructor(initial: State) {
		this.#state = initial;
	}

	/** Begins the work; everything that it starts ends with the signal. */
	protected abstract start(signal: AbortSignal): void;

	/** Starts watching. Returns the function that stops it. */
	readonly subscribe = (listener: () => void): (() => void) => {
		this.#listeners.add(listener);
		if (this.#work === null) {
			this.#work = new AbortController();
			this.start(this.#work.signal);
		}
		return () => {
			this.#listeners.delete(listener);
			if (this.#listeners.size > 0) return;
			this.#work?.abort();
			this.#work = null;
		};
	};

	/** The state; the same object until something changes. */
	readonly snapshot = (): State => this.#state;

	/** Changes the state on behalf of the work with this signal, unless that was stopped. */
	protected update(signal: AbortSignal, change: Partial<State>): void {
		if (signal.aborted) return;
		this.#state = { ...this.#state, ...change };
		for (const listener of [...this.#listeners]) listener();
	}

	/** The signal of the running work; null while there is no watcher. */
	protected get signal(): AbortSignal | null {
		return this.#work?.signal ?? null;
	}
}

/**
 * One event stream per context, however many hooks watch it: a browser has few connections to a server.
 *
 * A stream begins with its first watcher, ends with its last, and resumes for ever in between; only a refusal that will
 * not change, such as an unknown context, ends it earlier, and its watchers are told.
 */

import { DEFAULT_RETRY } from "../core/backoff.js";
import type { GatewayClient } from "../http/client.js";
import type { ContextId } from "../http/ids.js";
import type { StoreEvent } from "../http/resources.js";

/** Who watches a context. */
export interface Watcher {
	/** The stream is open and reports every event from now on. */
	onOpen(): void;
	/** The stream was lost and will be opened again. */
	onClose(): void;
	/** Something happened. */
	onEvent(event: StoreEvent): void;
	/** The stream has failed for good. */
	onError(error: unknown): void;
}

interface Stream {
	readonly watchers: Set<Watcher>;
	readonly controller: AbortController;
	isOpen: boolean;
}

export class EventHub {
	readonly #streams = new Map<ContextId, Stream>();

	constructor(private readonly client: GatewayClient) {}

	/** Watches a context until the signal is aborted. */
	watch(contextId: ContextId, watcher: Watcher, signal: AbortSignal): void {
		const stream = this.#streams.get(contextId) ?? this.#begin(contextId);
		stream.watchers.add(watcher);
		if (stream.isOpen) watcher.onOpen();
		signal.addEventListener("abort", () => this.#leave(contextId, stream, watcher), { once: true });
	}

	#begin(contextId: ContextId): Stream {
		const stream = { watchers: new Set<Watcher>(), controller: new AbortController(), isOpen: false };
		this.#streams.set(contextId, stream);
		void this.#follow(contextId, stream);
		return stream;
	}

	async #follow(contextId: ContextId, stream: Stream): Promise<void> {
		const tell = (say: (watcher: Watcher) => void) => [...stream.watchers].forEach(say);
		const setOpen = (isOpen: boolean) => {
			stream.isOpen = isOpen;
			tell((watcher) => (isOpen ? watcher.onOpen() : watcher.onClose()));
		};
		try {
			const events = this.client.events({
				contextId,
				signal: stream.controller.signal,
				retry: { ...DEFAULT_RETRY, attemptsMax: Number.POSITIVE_INFINITY },
				onOpen: () => setOpen(true),
				onClose: () => setOpen(false),
			});
			for await (const event of events) tell((watcher) => watcher.onEvent(event));
		} catch (error) {
			this.#forget(contextId, stream);
			tell((watcher) => watcher.onError(error));
		}
	}

	#leave(contextId: ContextId, stream: Stream, watcher: Watcher): void {
		stream.watchers.delete(watcher);
		if (stream.watchers.size > 0) return;
		stream.controller.abort();
		this.#forget(contextId, stream);
	}

	#forget(contextId: ContextId, stream: Stream): void {
		if (this.#streams.get(contextId) === stream) this.#streams.delete(contextId);
	}
}

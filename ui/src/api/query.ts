/** The cache of answers. Notices make its parts stale; nothing is polled. */

import { QueryClient } from "@tanstack/react-query";
import { ApiError } from "./errors";
import { type QueryKey, staleKeys } from "./keys";
import type { Notice } from "./notices";

/** A busy store sends hundreds of notices a second; screens are refetched at most this often. */
const REFETCH_EVERY_MS = 300;
const RETRIES_MAX = 3;

export const queryClient = new QueryClient({
	defaultOptions: {
		queries: {
			// A server on this machine answers also while the browser thinks that it is offline.
			networkMode: "always",
			staleTime: 30_000,
			// An answer of the server is an answer. Only a lost one is worth another try.
			retry: (count, error) => !(error instanceof ApiError) && count < RETRIES_MAX,
		},
		mutations: { networkMode: "always", retry: false },
	},
});

/** Collects what notices make stale, and refetches it in one go. */
export class Invalidation {
	readonly #stale = new Map<string, QueryKey>();
	#timer: ReturnType<typeof setTimeout> | null = null;

	/** `refetch` answers "again" if a request was under way, which may have read the state before the change. */
	constructor(private readonly refetch: (key: QueryKey) => "done" | "again") {}

	add(notice: Notice): void {
		for (const key of staleKeys(notice)) this.#stale.set(JSON.stringify(key), key);
		// The first notice after a pause is acted on at once; those that follow wait.
		if (this.#timer === null) this.#flush();
	}

	stop(): void {
		if (this.#timer !== null) clearTimeout(this.#timer);
		this.#timer = null;
		this.#stale.clear();
	}

	readonly #flush = (): void => {
		this.#timer = null;
		if (this.#stale.size === 0) return;
		const stale = [...this.#stale.values()];
		this.#stale.clear();
		this.#timer = setTimeout(this.#flush, REFETCH_EVERY_MS);
		const isAll = stale.some((key) => key.length === 0);
		for (const key of isAll ? [[]] : stale) {
			if (this.refetch(key) === "again") this.#stale.set(JSON.stringify(key), key);
		}
	};
}

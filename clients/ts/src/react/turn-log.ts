/**
 * A context's turns as a screen needs them: the newest pages, older ones on demand, new ones as they come.
 *
 * Invariant: `turns` is a stretch of the way to the head, oldest first, each turn the child of the one before; so
 * nothing is in it twice and nothing is missing. Whatever happens (an event, a stream that was lost and came back, a
 * head that moved to another branch), the log reads from the head until it meets a turn that it has, and joins there.
 */

import type { GatewayClient } from "../http/client.js";
import type { ContextId, TurnId } from "../http/ids.js";
import type { Turn, TurnPage, TurnPageOptions } from "../http/resources.js";
import type { EventHub } from "./event-hub.js";
import { Store } from "./store.js";

const PAGE_TURNS = 64;
/** After this many pages without a known turn, the log starts again at the head. */
const GAP_PAGES_MAX = 16;

/** How turns are shown and followed. */
export type UseTurnsOptions = Omit<TurnPageOptions, "limit" | "before_turn_id"> & {
	/** Turns in a page; 64 unless given. */
	readonly pageTurns?: number;
	/** Whether new turns come by themselves; they do unless this is false. */
	readonly live?: boolean;
};

/** What a screen shows. */
export interface TurnLogState {
	/** `ready` once the newest page is here; `error` when the last read failed. */
	readonly status: "loading" | "ready" | "error";
	/** The turns, oldest first. */
	readonly turns: readonly Turn[];
	/** Whether there are older ones. */
	readonly hasOlder: boolean;
	/** Whether older ones are on their way. */
	readonly isLoadingOlder: boolean;
	/** Whether new turns come by themselves at the moment. */
	readonly isLive: boolean;
	/** What went wrong last; null if nothing did. */
	readonly error: unknown;
}

const INITIAL: TurnLogState = {
	status: "loading",
	turns: [],
	hasOlder: false,
	isLoadingOlder: false,
	isLive: false,
	error: null,
};

export class TurnLog extends Store<TurnLogState> {
	readonly #view: Omit<TurnPageOptions, "limit" | "before_turn_id">;
	readonly #pageTurns: number;
	readonly #isFollowing: boolean;
	/** The work whose head is being read, and whether to read it once more. */
	#reading: AbortSignal | null = null;
	#isStale = false;

	constructor(
		private readonly client: GatewayClient,
		private readonly hub: EventHub,
		private readonly contextId: ContextId,
		{ pageTurns = PAGE_TURNS, live = true, ...view }: UseTurnsOptions = {},
	) {
		super(INITIAL);
		this.#view = view;
		this.#pageTurns = Math.max(1, pageTurns);
		this.#isFollowing = live;
	}

	/** Fetches the page before the oldest turn. Does nothing at the root, or while the page is being fetched. */
	readonly loadOlder = (): void => {
		const { turns, hasOlder, isLoadingOlder } = this.snapshot();
		const oldest = turns[0];
		if (this.signal === null || oldest === undefined || !hasOlder || isLoadingOlder) return;
		void this.#prependPage(oldest.turn_id, this.signal);
	};

	protected override start(signal: AbortSignal): void {
		this.update(signal, { isLoadingOlder: false, isLive: false });
		this.#readHead(signal);
		if (!this.#isFollowing) return;
		const watcher = {
			onOpen: () => {
				this.update(signal, { isLive: true });
				this.#readHead(signal);
			},
			onClose: () => this.update(signal, { isLive: false }),
			onEvent: (event: { kind: string }) => {
				if (event.kind === "turn.appended") this.#readHead(signal);
			},
			onError: (error: unknown) => this.update(signal, { isLive: false, status: "error", error }),
		};
		this.hub.watch(this.contextId, watcher, signal);
	}

	/** Reads from the head, and once more if it was asked for meanwhile. One at a time. */
	#readHead(signal: AbortSignal): void {
		if (this.#reading === signal) {
			this.#isStale = true;
			return;
		}
		this.#reading = signal;
		this.#isStale = false;
		this.#joinHead(signal)
			.catch((error: unknown) => this.update(signal, { status: "error", error }))
			.finally(() => {
				if (this.#reading !== signal) return;
				this.#reading = null;
				if (this.#isStale && !signal.aborted) this.#readHead(signal);
			});
	}

	async #joinHead(signal: AbortSignal): Promise<void> {
		let page = await this.#page(signal);
		let fresh = page.turns;
		const known = this.snapshot().turns;
		for (let pages = 1; known.length > 0 && joined(known, fresh) === null; pages += 1) {
			if (page.next_before_turn_id === null || pages === GAP_PAGES_MAX) break;
			page = await this.#page(signal, page.next_before_turn_id);
			fresh = [...page.turns, ...fresh];
		}
		// Older turns may have come meanwhile.
		const turns = joined(this.snapshot().turns, fresh);
		const hasOlder = turns === null ? page.next_before_turn_id !== null : this.snapshot().hasOlder;
		this.update(signal, { status: "ready", error: null, turns: turns ?? fresh, hasOlder });
	}

	async #prependPage(before: TurnId, signal: AbortSignal): Promise<void> {
		this.update(signal, { isLoadingOlder: true });
		try {
			const page = await this.#page(signal, before);
			const { turns } = this.snapshot();
			const isStillOldest = turns[0]?.turn_id === before;
			const older = { turns: [...page.turns, ...turns], hasOlder: page.next_before_turn_id !== null };
			this.update(signal, { isLoadingOlder: false, ...(isStillOldest ? older : {}) });
		} catch (error) {
			this.update(signal, { isLoadingOlder: false, status: "error", error });
		}
	}

	#page(signal: AbortSignal, before?: TurnId): Promise<TurnPage> {
		const start = before === undefined ? {} : { before_turn_id: before };
		return this.client.turns(this.contextId, { ...this.#view, ...start, limit: this.#pageTurns, signal });
	}
}

/** What is known up to where the fresh turns branch off, and the fresh ones from there; null if they do not meet. */
export function joined(known: readonly Turn[], fresh: readonly Turn[]): readonly Turn[] | null {
	if (fresh.length === 0) return known.length === 0 ? known : null;
	const places = new Map<string, number>(known.map((turn, index) => [turn.turn_id, index]));
	for (let index = fresh.length - 1; index >= 0; index -= 1) {
		const place = places.get((fresh[index] as Turn).turn_id);
		if (place === undefined) continue;
		const isUnchanged = place === known.length - 1 && index === fresh.length - 1;
		return isUnchanged ? known : [...known.slice(0, place + 1), ...fresh.slice(index + 1)];
	}
	const parent = places.get((fresh[0] as Turn).parent_turn_id);
	return parent === undefined ? null : [...known.slice(0, parent + 1), ...fresh];
}

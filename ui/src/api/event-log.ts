/**
 * A part of a run's events, folded: the newest page at once, older ones on demand or all of them, and what happens live.
 *
 * It first waits until the run is followed, and only then fetches: so no event falls between the page and the socket.
 * The events are kept in a compact form (the pieces of a text become one), because an older page means folding anew.
 * If the socket skipped events, everything is fetched again.
 */

import type { RunEvent } from "../model/run";
import type { LiveRunView } from "./live-run";

export interface EventFold<State> {
	readonly empty: State;
	/** Folds events in their order. It must not change `state`. */
	readonly apply: (state: State, events: readonly RunEvent[]) => State;
}

export interface EventPage {
	/** In ascending order. */
	readonly events: readonly RunEvent[];
	/** Where the page before it ends; null if there is none. */
	readonly before: number | null;
}

/** The live run, as far as it is needed here. */
export interface FollowedRun {
	readonly view: () => LiveRunView;
	readonly subscribe: (listener: () => void) => () => void;
	readonly subscribeEvents: (listener: (events: readonly RunEvent[]) => void) => () => void;
}

export interface EventLogOptions<State> {
	readonly run: FollowedRun;
	readonly fold: EventFold<State>;
	/** The page that ends just before a number; the newest one for null. */
	readonly fetchPage: (before: number | null, signal: AbortSignal) => Promise<EventPage>;
	/** Whether a live event is one of those that `fetchPage` would return. */
	readonly keeps: (event: RunEvent) => boolean;
	/** Whether all pages are fetched, or only the newest until `loadOlder` asks. */
	readonly isWhole: boolean;
}

export type EventLogView<State> =
	| { readonly status: "loading" }
	| { readonly status: "failed"; readonly error: unknown }
	| {
			readonly status: "shown";
			readonly state: State;
			readonly hasOlder: boolean;
			readonly isLoadingOlder: boolean;
			/** Why the older page did not come. */
			readonly olderError: unknown;
	  };

export class EventLog<State> {
	#view: EventLogView<State> = { status: "loading" };
	readonly #listeners = new Set<() => void>();
	#events: RunEvent[] = [];
	#before: number | null = null;
	#lastSeq = 0;
	#lastSeen: number | null = null;
	#waiting: RunEvent[] | null = [];
	#load: AbortController | null = null;
	#stops: (() => void)[] = [];

	constructor(private readonly options: EventLogOptions<State>) {}

	readonly view = (): EventLogView<State> => this.#view;

	readonly subscribe = (listener: () => void): (() => void) => {
		this.#listeners.add(listener);
		return () => void this.#listeners.delete(listener);
	};

	/** Begins to follow; the returned function ends it. */
	start(): () => void {
		const { run } = this.options;
		this.#stops = [run.subscribe(() => this.#runMoved()), run.subscribeEvents((events) => this.#arrived(events))];
		this.#runMoved();
		return () => {
			for (const stop of this.#stops) stop();
			this.#load?.abort();
			this.#load = null;
		};
	}

	readonly retry = (): void => {
		this.#load?.abort();
		this.#load = null;
		this.#show({ status: "loading" });
		this.#runMoved();
	};

	/** Fetches the page before what is shown. */
	readonly loadOlder = (): void => {
		const view = this.#view;
		if (view.status !== "shown" || !view.hasOlder || view.isLoadingOlder) return;
		this.#show({ ...view, isLoadingOlder: true, olderError: null });
		void this.#fetchOlder();
	};

	#runMoved(): void {
		if (this.#load !== null || this.#view.status !== "loading") return;
		const run = this.options.run.view();
		if (run.status === "failed") this.#show({ status: "failed", error: run.error });
		if (run.status === "shown") void this.#begin();
	}

	async #begin(): Promise<void> {
		const load = new AbortController();
		this.#load = load;
		this.#waiting ??= [];
		try {
			let page = await this.options.fetchPage(null, load.signal);
			let events = [...page.events];
			while (this.options.isWhole && page.before !== null) {
				page = await this.options.fetchPage(page.before, load.signal);
				events = [...page.events, ...events];
			}
			if (load.signal.aborted) return;
			this.#events = compact([], events);
			this.#before = page.before;
			this.#lastSeq = events.at(-1)?.seq ?? 0;
			const { empty, apply } = this.options.fold;
			this.#showState(apply(empty, this.#events));
			const waiting = this.#waiting ?? [];
			this.#waiting = null;
			this.#append(waiting);
		} catch (error) {
			if (!load.signal.aborted) this.#show({ status: "failed", error });
		}
	}

	async #fetchOlder(): Promise<void> {
		const signal = this.#load?.signal ?? AbortSignal.abort();
		try {
			const page = await this.options.fetchPage(this.#before, signal);
			if (signal.aborted) return;
			this.#before = page.before;
			this.#events = compact([...page.events], this.#events);
			const { empty, apply } = this.options.fold;
			this.#showState(apply(empty, this.#events));
		} catch (olderError) {
			if (signal.aborted || this.#view.status !== "shown") return;
			this.#show({ ...this.#view, isLoadingOlder: false, olderError });
		}
	}

	#arrived(events: readonly RunEvent[]): void {
		const numbers = events.flatMap((event) => event.seq ?? []);
		const first = numbers[0];
		const hasGap = this.#lastSeen !== null && first !== undefined && first > this.#lastSeen + 1;
		this.#lastSeen = numbers.at(-1) ?? this.#lastSeen;
		if (hasGap) {
			this.#load?.abort();
			this.#waiting = [];
			void this.#begin();
			return;
		}
		const mine = events.filter(this.options.keeps);
		if (this.#waiting !== null) this.#waiting.push(...mine);
		else this.#append(mine);
	}

	#append(events: readonly RunEvent[]): void {
		const fresh = events.filter((event) => event.seq == null || event.seq > this.#lastSeq);
		if (fresh.length === 0 || this.#view.status !== "shown") return;
		this.#lastSeq = fresh.at(-1)?.seq ?? this.#lastSeq;
		this.#events = compact(this.#events, fresh);
		this.#show({ ...this.#view, state: this.options.fold.apply(this.#view.state, fresh) });
	}

	#showState(state: State): void {
		const hasOlder = this.#before !== null;
		this.#show({ status: "shown", state, hasOlder, isLoadingOlder: false, olderError: null });
	}

	#show(view: EventLogView<State>): void {
		this.#view = view;
		for (const listener of this.#listeners) listener();
	}
}

/** Appends events to others; pieces of one text become one event, and a whole text replaces its pieces. */
export function compact(kept: RunEvent[], more: readonly RunEvent[]): RunEvent[] {
	for (const event of more) {
		const last = kept.at(-1);
		if (last !== undefined && isPieceOf(last, event) && "delta" in event && "delta" in last) {
			kept[kept.length - 1] = { ...event, delta: last.delta + event.delta };
		} else if (last !== undefined && isWholeOf(last, event)) {
			kept[kept.length - 1] = event;
		} else {
			kept.push(event);
		}
	}
	return kept;
}

function isPieceOf(last: RunEvent, event: RunEvent): boolean {
	const isPiece = event.type === "message.assistant.delta" || event.type === "message.assistant.thinking.delta";
	return isPiece && last.type === event.type && last.turnId === event.turnId && last.nodeId === event.nodeId;
}

function isWholeOf(last: RunEvent, event: RunEvent): boolean {
	const isSame = last.turnId === event.turnId && last.nodeId === event.nodeId;
	switch (event.type) {
		case "message.assistant.final":
			return isSame && last.type === "message.assistant.delta";
		case "message.assistant.thinking.final":
			return isSame && last.type === "message.assistant.thinking.delta";
		default:
			return false;
	}
}

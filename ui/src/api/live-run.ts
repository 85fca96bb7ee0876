/**
 * A run as it happens: its snapshot, then its events, folded outside React and shown at most once a frame.
 *
 * One object per run and window, shared by every screen and drawer that shows the run, and kept for a moment after the
 * last of them closed, so that going from one tab to another opens nothing anew.
 */

import { applyEvents, type RunEvent, type RunState, readEvent, runFromSnapshot, withApprovals } from "../model/run";
import type { Schema } from "../model/schema";
import { isNotFound } from "./errors";
import type { SocketListener, SocketState, SocketTarget } from "./run-socket";

export type LiveRunView =
	| { readonly status: "loading" }
	| { readonly status: "failed"; readonly error: unknown }
	/** `isLive` is false while the socket is away: the state is as old as `asOf`. */
	| { readonly status: "shown"; readonly state: RunState; readonly isLive: boolean; readonly asOf: number };

/** What a live run needs; tests give their own. */
export interface LiveRunPlatform {
	snapshot(runId: string, signal: AbortSignal): Promise<Schema<"RunView">>;
	approvals(runId: string, signal: AbortSignal): Promise<readonly Schema<"ApprovalView">[]>;
	follow(target: SocketTarget, listener: SocketListener): () => void;
	/** Calls back before the next frame, or soon in a hidden window; returns how to cancel. */
	schedule(callback: () => void): () => void;
	now(): number;
}

export class LiveRun {
	#view: LiveRunView = { status: "loading" };
	readonly #viewListeners = new Set<() => void>();
	readonly #eventListeners = new Set<(events: readonly RunEvent[]) => void>();
	#pending: RunEvent[] = [];
	#cancelFlush: (() => void) | null = null;
	#unfollow: (() => void) | null = null;
	#loading: AbortController | null = null;
	#lastQueued = 0;

	constructor(
		readonly runId: string,
		private readonly platform: LiveRunPlatform,
	) {
		void this.#load();
	}

	readonly view = (): LiveRunView => this.#view;

	/** Calls back after each change of `view()`. */
	readonly subscribe = (listener: () => void): (() => void) => {
		this.#viewListeners.add(listener);
		return () => void this.#viewListeners.delete(listener);
	};

	/** Calls back with the events of each frame, after they were folded; for timelines, which fold them as well. */
	readonly subscribeEvents = (listener: (events: readonly RunEvent[]) => void): (() => void) => {
		this.#eventListeners.add(listener);
		return () => void this.#eventListeners.delete(listener);
	};

	close(): void {
		this.#loading?.abort();
		this.#unfollow?.();
		this.#cancelFlush?.();
	}

	/** Fetches the run again, after a failure. */
	readonly retry = (): void => void this.#load();

	async #load(): Promise<void> {
		this.#loading?.abort();
		const loading = new AbortController();
		this.#loading = loading;
		try {
			const snapshot = await this.platform.snapshot(this.runId, loading.signal);
			// In this order: an approval that was resolved between the two is then in neither.
			const approvals = await this.platform.approvals(this.runId, loading.signal);
			if (loading.signal.aborted) return;
			this.#begin(withApprovals(runFromSnapshot(snapshot), approvals));
		} catch (error) {
			if (loading.signal.aborted) return;
			// A run that was shown stays on screen; only its end is worth saying.
			if (this.#view.status !== "shown") this.#show({ status: "failed", error });
			else if (isNotFound(error)) this.#showState({ ...this.#view.state, isDeleted: true }, false);
		}
	}

	#begin(state: RunState): void {
		this.#pending = [];
		this.#lastQueued = state.lastSeq;
		this.#showState(state, false);
		this.#unfollow?.();
		this.#unfollow = this.platform.follow(
			{ kind: "run", runId: this.runId, since: () => this.#lastQueued },
			{
				onText: (text) => this.#queue(readEvent(text)),
				onBytes: () => undefined,
				onState: (state) => this.#socketMoved(state),
				onRefused: () => void this.#load(),
			},
		);
	}

	#socketMoved(socket: SocketState): void {
		if (this.#view.status !== "shown") return;
		const { state, isLive } = this.#view;
		switch (socket.state) {
			case "open":
				this.#showState(state, true);
				return;
			case "connecting":
			case "waiting":
				if (isLive) this.#showState(state, false);
				return;
			case "ended":
				this.#showState({ ...state, isDeleted: true }, false);
		}
	}

	#queue(event: RunEvent | null): void {
		if (event === null) return;
		if (event.seq != null) this.#lastQueued = Math.max(this.#lastQueued, event.seq);
		this.#pending.push(event);
		this.#cancelFlush ??= this.platform.schedule(() => this.#flush());
	}

	#flush(): void {
		this.#cancelFlush = null;
		const events = this.#pending;
		this.#pending = [];
		if (this.#view.status !== "shown" || events.length === 0) return;
		this.#showState(applyEvents(this.#view.state, events), this.#view.isLive);
		for (const listener of this.#eventListeners) listener(events);
	}

	#showState(state: RunState, isLive: boolean): void {
		this.#show({ status: "shown", state, isLive, asOf: this.platform.now() });
	}

	#show(view: LiveRunView): void {
		this.#view = view;
		for (const listener of this.#viewListeners) listener();
	}
}

/** How long a run that no screen shows is kept. */
const KEEP_MS = 3_000;

/** The live runs of a window. */
export class LiveRuns {
	readonly #held = new Map<string, { run: LiveRun; users: number; timer: ReturnType<typeof setTimeout> | null }>();

	constructor(private readonly platform: LiveRunPlatform) {}

	/** The live run of this id, kept until `release` was called as often. */
	acquire(runId: string): LiveRun {
		let held = this.#held.get(runId);
		if (held === undefined) {
			held = { run: new LiveRun(runId, this.platform), users: 0, timer: null };
			this.#held.set(runId, held);
		}
		if (held.timer !== null) clearTimeout(held.timer);
		held.timer = null;
		held.users += 1;
		return held.run;
	}

	/** Looks without keeping: for a render, before its effect acquires. */
	peek(runId: string): LiveRun {
		const run = this.acquire(runId);
		this.release(runId);
		return run;
	}

	release(runId: string): void {
		const held = this.#held.get(runId);
		if (held === undefined) return;
		held.users -= 1;
		if (held.users > 0) return;
		if (held.timer !== null) clearTimeout(held.timer);
		held.timer = setTimeout(() => {
			held.run.close();
			this.#held.delete(runId);
		}, KEEP_MS);
	}
}

/**
 * The connections of this window, made once: the notice stream, the socket and the live runs.
 *
 * `connectWindow` starts the stream; screens use `windowSocket`, `useLiveRun` and `onNotice`.
 */

import { useEffect, useSyncExternalStore } from "react";
import { connectionStore, noteVersion, setConnection } from "./connection";
import { answer, api } from "./http";
import { type LiveRun, LiveRuns, type LiveRunView } from "./live-run";
import { followNotices, type Notice, type NoticePlatform } from "./notices";
import { Invalidation, queryClient } from "./query";
import { type SocketLike, WindowSocket } from "./run-socket";
import { noteServerTime, serverNow } from "./server-clock";

export const windowSocket = new WindowSocket({
	open: (path) => new WebSocket(path) as SocketLike,
	canConnect() {
		const { state } = connectionStore.getState().connection;
		return state === "connected" || state === "connecting";
	},
	random: Math.random,
});

export const liveRuns = new LiveRuns({
	async snapshot(runId, signal) {
		const path = { run_id: runId };
		return (await answer(api.GET("/api/runs/{run_id}", { params: { path }, signal }))).run;
	},
	async approvals(runId, signal) {
		const found = await answer(api.GET("/api/approvals", { params: { query: { runId } }, signal }));
		return found.approvals.map(({ approval }) => approval);
	},
	follow: (target, listener) => windowSocket.follow(target, listener),
	schedule(callback) {
		// A hidden window gets no frames, but its state must not fall behind without bound.
		if (document.visibilityState === "hidden") {
			const timer = setTimeout(callback, 250);
			return () => clearTimeout(timer);
		}
		const frame = requestAnimationFrame(callback);
		return () => cancelAnimationFrame(frame);
	},
	now: serverNow,
});

const noticeListeners = new Set<(notice: Notice) => void>();

/** Calls back with every notice; for what no cache key stands for. Returns how to stop. */
export function onNotice(listener: (notice: Notice) => void): () => void {
	noticeListeners.add(listener);
	return () => void noticeListeners.delete(listener);
}

const platform: NoticePlatform = {
	async open({ after, signal }) {
		const headers = { accept: "text/event-stream", ...(after === null ? {} : { "last-event-id": after }) };
		const response = await fetch("/v1/events", { headers, signal, cache: "no-store" });
		noteServerTime(response.headers.get("date"));
		return response;
	},
	pause(ms, signal) {
		return new Promise((resolve) => {
			const done = () => {
				clearTimeout(timer);
				signal.removeEventListener("abort", done);
				resolve();
			};
			const timer = setTimeout(done, ms);
			signal.addEventListener("abort", done);
			if (signal.aborted) done();
		});
	},
	now: serverNow,
	random: Math.random,
};

/** Opens the notice stream and keeps it open. Returns how to close it. */
export function connectWindow(): () => void {
	const end = new AbortController();
	const invalidation = new Invalidation((queryKey) => {
		const isFetching = queryClient.isFetching({ queryKey }) > 0;
		// Not cancelled: under a steady stream of notices a slow request would never come to its end.
		void queryClient.invalidateQueries({ queryKey }, { cancelRefetch: false });
		return isFetching ? "again" : "done";
	});
	let wasLost = false;
	const listener = {
		onNotice(notice: Notice) {
			invalidation.add(notice);
			for (const each of noticeListeners) each(notice);
		},
		onConnection(connection: ReturnType<typeof connectionStore.getState>["connection"]) {
			setConnection(connection);
			// After a sleep both connections may be dead, and only the stream notices its silence.
			if (connection.state === "connected" && wasLost) windowSocket.reconnect();
			wasLost = connection.state !== "connected";
		},
		onOpen: () => void readVersion(),
	};
	void followNotices(platform, listener, end.signal);
	return () => {
		end.abort();
		invalidation.stop();
	};
}

async function readVersion(): Promise<void> {
	try {
		noteVersion((await answer(api.GET("/healthz"))).version);
	} catch {
		// The stream is open, so the server is there; the next connect asks again.
	}
}

/** A run as it happens. All users of one run share one connection. */
export function useLiveRun(runId: string): LiveRunView {
	const run = liveRuns.peek(runId);
	useKeptRun(runId);
	return useSyncExternalStore(run.subscribe, run.view);
}

/** The live run itself, for `subscribeEvents` and `retry`. */
export function useLiveRunHandle(runId: string): LiveRun {
	const run = liveRuns.peek(runId);
	useKeptRun(runId);
	return run;
}

function useKeptRun(runId: string): void {
	useEffect(() => {
		liveRuns.acquire(runId);
		return () => liveRuns.release(runId);
	}, [runId]);
}

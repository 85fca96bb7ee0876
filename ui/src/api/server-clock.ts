/**
 * The time by the server's clock. All times that the server sends are of that clock, and a browser's own may be an hour
 * off, so ages on screen are counted by this one. Each connect of the notice stream notes the difference.
 */

import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";

/** A `Date` header has whole seconds, and the answer takes time to arrive: less than this is no difference. */
const DIFFERENCE_MS_MIN = 3_000;

const serverClock = createStore(() => ({ aheadMs: 0 }));

/** Notes the `Date` header of an answer that has just arrived. */
export function noteServerTime(date: string | null): void {
	const aheadMs = Date.parse(date ?? "") - Date.now();
	if (Number.isNaN(aheadMs)) return;
	serverClock.setState({ aheadMs: Math.abs(aheadMs) < DIFFERENCE_MS_MIN ? 0 : aheadMs });
}

/** Milliseconds since 1970, by the server's clock. */
export function serverNow(): number {
	return Date.now() + serverClock.getState().aheadMs;
}

/** How far the server's clock is ahead of the browser's. */
export function useServerAhead(): number {
	return useStore(serverClock, (state) => state.aheadMs);
}

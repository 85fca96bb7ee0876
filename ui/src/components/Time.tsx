/** A time: relative in the text, exact on hover, machine-readable in `datetime`. One clock drives all of them. */

import { useSyncExternalStore } from "react";
import { useServerAhead } from "../api/server-clock";
import { formatAge, formatDuration, formatExact, formatRelative, parseTime } from "../model/time";

/** How often ages on screen may change. */
const TICK_MS = 5_000;

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;
/** By the browser's clock. */
let clock = Date.now();

function subscribe(listener: () => void): () => void {
	listeners.add(listener);
	if (timer === null) {
		// It stood while nothing showed a time.
		clock = Date.now();
		timer = setInterval(tick, TICK_MS);
	}
	return () => {
		listeners.delete(listener);
		if (listeners.size > 0 || timer === null) return;
		clearInterval(timer);
		timer = null;
	};
}

function tick(): void {
	if (document.visibilityState === "hidden") return;
	clock = Date.now();
	for (const listener of listeners) listener();
}

/** The time now by the server's clock, in steps of five seconds. */
export function useNow(): number {
	const ahead = useServerAhead();
	return useSyncExternalStore(subscribe, () => clock) + ahead;
}

export interface TimeProps {
	/** RFC 3339 or milliseconds. */
	readonly at: string | number;
	/** "4 min ago", only "4 min", or the exact time. */
	readonly format?: "relative" | "age" | "exact";
}

export function Time({ at, format = "relative" }: TimeProps) {
	const now = useNow();
	const ms = parseTime(at);
	if (ms === null) return String(at);
	const exact = formatExact(ms);
	// The clock only ticks now and then, so something new may lie before it.
	const shown = {
		relative: () => formatRelative(ms, Math.max(now, Math.min(ms, now + TICK_MS))),
		age: () => formatAge(ms, now),
		exact: () => exact,
	};
	return (
		<time dateTime={new Date(ms).toISOString()} title={exact}>
			{shown[format]()}
		</time>
	);
}

/** How long something took. */
export function Duration({ ms }: { readonly ms: number }) {
	return <span title={`${Math.round(ms)} ms`}>{formatDuration(ms)}</span>;
}

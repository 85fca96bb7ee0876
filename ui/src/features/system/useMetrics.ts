/** Reads `/metrics` while the page is open. No notice announces a number, so this asks again and again. */

import { useEffect } from "react";
import { useStore } from "zustand";
import { type Metrics, metricsStore, readOnce } from "./metrics-store";

export const PERIOD_MS = 5_000;
/** A rate needs two readings: the second one comes soon. */
const SECOND_MS = 1_000;

export function useMetrics(): Metrics {
	useEffect(() => {
		const abort = new AbortController();
		const read = () => {
			if (document.visibilityState !== "hidden") void readOnce(abort.signal);
		};
		read();
		const second = setTimeout(read, SECOND_MS);
		const timer = setInterval(read, PERIOD_MS);
		return () => {
			abort.abort();
			clearTimeout(second);
			clearInterval(timer);
		};
	}, []);
	return useStore(metricsStore);
}

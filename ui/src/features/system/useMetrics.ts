/** Reads `/metrics` while the page is open. No notice announces a number, so this asks again and again. */

import { useEffect, useState } from "react";
import { request } from "../../api/http";
import { addSample, readMetrics, type Sample } from "../../model/metrics";

const PERIOD_MS = 5_000;

export interface Metrics {
	readonly samples: readonly Sample[];
	readonly error: unknown;
}

export function useMetrics(): Metrics {
	const [metrics, setMetrics] = useState<Metrics>({ samples: [], error: null });
	useEffect(() => {
		const abort = new AbortController();
		const read = async () => {
			if (document.visibilityState === "hidden") return;
			try {
				const text = await (await request("/metrics", { signal: abort.signal })).text();
				const sample = readMetrics(text, Date.now());
				setMetrics(({ samples }) => ({ samples: addSample(samples, sample), error: null }));
			} catch (error) {
				if (!abort.signal.aborted) setMetrics(({ samples }) => ({ samples, error }));
			}
		};
		void read();
		const timer = setInterval(() => void read(), PERIOD_MS);
		return () => {
			abort.abort();
			clearInterval(timer);
		};
	}, []);
	return metrics;
}

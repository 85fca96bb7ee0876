/** The readings of `/metrics` of this window: they stay while a person looks at another page and comes back. */

import { createStore } from "zustand/vanilla";
import { request } from "../../api/http";
import { serverNow } from "../../api/server-clock";
import { addSample, readMetrics, type Sample } from "../../model/metrics";
import {
	allBuckets,
	type Bucket,
	httpAnswers,
	type RequestMetrics,
	readRequestMetrics,
} from "../../model/request-metrics";

/** One reading, with the times of the requests until then. */
export interface Reading extends Sample {
	readonly buckets: readonly Bucket[];
}

export interface Metrics {
	readonly readings: readonly Reading[];
	/** The newest state of each route. */
	readonly requests: RequestMetrics;
	readonly error: unknown;
}

/** Names that the server does not have: the requests of all routes together. */
export const HTTP_ANSWERS = "http_answers";
export const BINARY_ANSWERS = "binary_answers";

export const metricsStore = createStore<Metrics>(() => ({
	readings: [],
	requests: { routes: [], binary: 0 },
	error: null,
}));

export async function readOnce(signal: AbortSignal): Promise<void> {
	try {
		const text = await (await request("/metrics", { signal })).text();
		const reading = readingOf(text, serverNow());
		metricsStore.setState(({ readings }) => ({ ...reading, readings: keep(readings, reading.reading), error: null }));
	} catch (error) {
		if (!signal.aborted) metricsStore.setState({ error });
	}
}

function readingOf(text: string, at: number): { readonly reading: Reading; readonly requests: RequestMetrics } {
	const requests = readRequestMetrics(text);
	const { values } = readMetrics(text, at);
	const totals = [
		[HTTP_ANSWERS, httpAnswers(requests)],
		[BINARY_ANSWERS, requests.binary],
	] as const;
	return { requests, reading: { at, values: new Map([...values, ...totals]), buckets: allBuckets(requests) } };
}

function keep(readings: readonly Reading[], reading: Reading): readonly Reading[] {
	return addSample(readings, reading) as readonly Reading[];
}

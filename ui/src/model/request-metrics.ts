/**
 * The requests that the server answered, from `/metrics`: how many by route, and how long HTTP took.
 *
 * The times are a histogram whose buckets grow with the server's age, so a time of the last seconds comes from the
 * difference of two readings. A bucket is four times as wide as the one before: a time from it is a rough one.
 */

/** So many requests took at most `seconds`. */
export interface Bucket {
	readonly seconds: number;
	readonly count: number;
}

/** The answers of one route since the server started. */
export interface RouteMetrics {
	readonly route: string;
	readonly method: string;
	readonly answered: number;
	/** Answers that say that the request was wrong. */
	readonly refused: number;
	/** Answers that say that the server could not do it. */
	readonly failed: number;
	/** All their times together. */
	readonly seconds: number;
	readonly buckets: readonly Bucket[];
}

export interface RequestMetrics {
	/** The busiest first. */
	readonly routes: readonly RouteMetrics[];
	/** Requests over the binary protocol. */
	readonly binary: number;
}

/** What this page itself asks for again and again says nothing about the server's work. */
const OWN_ROUTES: readonly string[] = ["/metrics", "/v1/metrics", "/v1/stats"];

const LINE = /^(\w+)\{(.*)\} (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
/** The answers in each bucket are a quarter to all of its time; the first bucket has no one before it. */
const BUCKET_GROWTH = 4;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type GrowingRoute = Mutable<RouteMetrics> & { buckets: Bucket[] };

export function readRequestMetrics(text: string): RequestMetrics {
	const routes = new Map<string, GrowingRoute>();
	let binary = 0;
	for (const line of text.split("\n")) {
		const [, name, labelText = "", valueText] = LINE.exec(line) ?? [];
		const value = Number(valueText);
		if (name === undefined || !Number.isFinite(value)) continue;
		const labels = readLabels(labelText);
		if (name === "turnkeep_tcp_requests_total") binary += value;
		else if (name.startsWith("turnkeep_http_request")) addToRoute(routeOf(routes, labels), name, labels, value);
	}
	const others = [...routes.values()].filter(({ route }) => !OWN_ROUTES.includes(route));
	return { binary, routes: others.toSorted((one, other) => other.answered - one.answered) };
}

function readLabels(text: string): ReadonlyMap<string, string> {
	return new Map([...text.matchAll(LABEL)].map(([, name = "", value = ""]) => [name, value]));
}

function routeOf(routes: Map<string, GrowingRoute>, labels: ReadonlyMap<string, string>): GrowingRoute {
	const [route, method] = [labels.get("route") ?? "", labels.get("method") ?? ""];
	const key = `${method} ${route}`;
	const known = routes.get(key);
	if (known !== undefined) return known;
	const fresh = { route, method, answered: 0, refused: 0, failed: 0, seconds: 0, buckets: [] };
	routes.set(key, fresh);
	return fresh;
}

function addToRoute(route: GrowingRoute, name: string, labels: ReadonlyMap<string, string>, value: number): void {
	switch (name) {
		case "turnkeep_http_requests_total": {
			const status = Number(labels.get("status"));
			route.answered += value;
			if (status >= 500) route.failed += value;
			else if (status >= 400) route.refused += value;
			return;
		}
		case "turnkeep_http_request_seconds_sum":
			route.seconds += value;
			return;
		case "turnkeep_http_request_seconds_bucket": {
			const end = labels.get("le");
			route.buckets.push({ seconds: end === "+Inf" ? Number.POSITIVE_INFINITY : Number(end), count: value });
		}
	}
}

/** HTTP requests that were answered. */
export function httpAnswers({ routes }: RequestMetrics): number {
	return routes.reduce((sum, { answered }) => sum + answered, 0);
}

/** The times of all routes together. */
export function allBuckets({ routes }: RequestMetrics): readonly Bucket[] {
	const counts = new Map<number, number>();
	for (const { seconds, count } of routes.flatMap(({ buckets }) => buckets)) {
		counts.set(seconds, (counts.get(seconds) ?? 0) + count);
	}
	return [...counts]
		.map(([seconds, count]) => ({ seconds, count }))
		.toSorted((one, other) => one.seconds - other.seconds);
}

/**
 * The time in which this share of the requests between two readings was answered, in milliseconds; null if there was none.
 *
 * `share` 0.95 of 100 requests: the time of the 95th. Inside a bucket the times are taken as evenly spread.
 */
export function timeOfShare(before: readonly Bucket[], after: readonly Bucket[], share: number): number | null {
	const counted = new Map(before.map(({ seconds, count }) => [seconds, count]));
	const grown = after.map(({ seconds, count }) => ({ seconds, count: count - (counted.get(seconds) ?? 0) }));
	const total = grown.at(-1)?.count ?? 0;
	// A restarted server counts from zero again.
	if (total <= 0 || grown.some(({ count }) => count < 0)) return null;
	const wanted = total * share;
	const at = grown.findIndex(({ count }) => count >= wanted);
	const bucket = grown[at];
	if (bucket === undefined) return null;
	const below = grown[at - 1];
	const start = below?.seconds ?? bucket.seconds / BUCKET_GROWTH;
	// The last bucket has no end: all that is known is that it took longer.
	if (!Number.isFinite(bucket.seconds)) return start * 1000;
	const inside = bucket.count - (below?.count ?? 0);
	const part = inside === 0 ? 1 : (wanted - (below?.count ?? 0)) / inside;
	return (start + (bucket.seconds - start) * part) * 1000;
}

/** The mean time of a route in milliseconds; null before its first answer. */
export function meanTime({ answered, seconds }: RouteMetrics): number | null {
	return answered === 0 ? null : (seconds * 1000) / answered;
}

/** "0.3 ms", "12 ms", "1.4 s". */
export function formatLatency(ms: number): string {
	if (ms < 10) return `${ms.toFixed(1)} ms`;
	return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

import { describe, expect, it } from "vitest";
import { allBuckets, formatLatency, httpAnswers, meanTime, readRequestMetrics, timeOfShare } from "./request-metrics";

const TEXT = `# TYPE turnkeep_http_requests counter
turnkeep_http_requests_total{route="/v1/worlds/{world}/stream",method="GET",status="200"} 8
turnkeep_http_requests_total{route="/v1/worlds/{world}/stream",method="GET",status="404"} 2
turnkeep_http_requests_total{route="/api/runs",method="POST",status="503"} 1
turnkeep_http_requests_total{route="/metrics",method="GET",status="200"} 900
turnkeep_http_request_seconds_sum{route="/v1/worlds/{world}/stream",method="GET"} 0.02
turnkeep_http_request_seconds_bucket{le="0.0016",route="/v1/worlds/{world}/stream",method="GET"} 4
turnkeep_http_request_seconds_bucket{le="0.0064",route="/v1/worlds/{world}/stream",method="GET"} 10
turnkeep_http_request_seconds_bucket{le="+Inf",route="/v1/worlds/{world}/stream",method="GET"} 10
turnkeep_tcp_requests_total{message="append",status="0"} 5
turnkeep_tcp_requests_total{message="append",status="409"} 1
turnkeep_turns_total 12
`;

describe("metrics of requests", () => {
	const metrics = readRequestMetrics(TEXT);

	it("are read by route, without what the page itself asks for", () => {
		expect(metrics.routes.map(({ route, answered, refused, failed }) => [route, answered, refused, failed])).toEqual([
			["/v1/worlds/{world}/stream", 10, 2, 0],
			["/api/runs", 1, 0, 1],
		]);
		expect(metrics.binary).toBe(6);
		expect(httpAnswers(metrics)).toBe(11);
	});

	it("give the mean of a route, and none before its first answer", () => {
		const [stream] = metrics.routes;
		if (stream === undefined) throw new Error("no route was read");
		expect(meanTime(stream)).toBeCloseTo(2);
		expect(meanTime({ ...stream, answered: 0 })).toBeNull();
	});

	it("are nothing where there is nothing", () => {
		expect(readRequestMetrics("")).toEqual({ routes: [], binary: 0 });
	});
});

describe("the time of a share of the requests", () => {
	const buckets = (...counts: number[]) =>
		counts.map((count, at) => ({ seconds: [0.001, 0.004, Number.POSITIVE_INFINITY][at] ?? 0, count }));

	it("lies in the bucket where that share was answered", () => {
		expect(timeOfShare([], buckets(10, 20, 20), 0.5)).toBeCloseTo(1);
		expect(timeOfShare([], buckets(10, 20, 20), 0.75)).toBeCloseTo(2.5);
	});

	it("counts only what came between two readings", () => {
		expect(timeOfShare(buckets(100, 100, 100), buckets(100, 110, 110), 1)).toBeCloseTo(4);
		expect(timeOfShare(buckets(5, 5, 5), buckets(5, 5, 5), 0.5)).toBeNull();
	});

	it("is the last known end where the server took longer", () => {
		expect(timeOfShare([], buckets(0, 0, 3), 0.5)).toBeCloseTo(4);
	});

	it("is unknown after a restart", () => {
		expect(timeOfShare(buckets(9, 9, 9), buckets(1, 1, 1), 0.5)).toBeNull();
	});

	it("sums the buckets of all routes", () => {
		expect(allBuckets(readRequestMetrics(TEXT)).map(({ count }) => count)).toEqual([4, 10, 10]);
	});
});

it("latencies have a unit", () => {
	expect([0.31, 12.4, 1400].map(formatLatency)).toEqual(["0.3 ms", "12 ms", "1.4 s"]);
});

/** The handoffs of a live run by edge. Their past is fetched once, then they are folded as they happen. */

import { useEffect, useMemo, useState } from "react";
import { answer, api } from "../../../api/http";
import { useLiveRunHandle } from "../../../api/window";
import { HANDOFF_EVENTS, HandoffLog, type Traffic, trafficOf } from "../../../model/handoffs";
import type { RunEvent, TrackedEnvelope } from "../../../model/run";
import { useRun } from "./run-source";

/** The newest events of a page. Older handoffs than these rest nowhere any more, except in runs without end. */
const PAST_EVENTS_MAX = 2_000;

/** Null until the past is known. */
export function useTraffic(runId: string): Traffic | null {
	const run = useLiveRunHandle(runId);
	const [envelopes, setEnvelopes] = useState<Readonly<Record<string, TrackedEnvelope>> | null>(null);
	const edges = useRun((state) => state.edges);
	useEffect(() => {
		const log = new HandoffLog(runId);
		const end = new AbortController();
		const stop = run.subscribeEvents((events) => {
			if (log.add(events)) setEnvelopes((shown) => (shown === null ? null : log.envelopes));
		});
		fetchPast(runId, end.signal).then(
			(past) => {
				log.begin(past);
				setEnvelopes(log.envelopes);
			},
			// Without the past the counts begin now; the graph itself is complete.
			() => {
				if (end.signal.aborted) return;
				log.begin([]);
				setEnvelopes(log.envelopes);
			},
		);
		return () => {
			end.abort();
			stop();
		};
	}, [run, runId]);
	return useMemo(() => (envelopes === null ? null : trafficOf(edges, envelopes)), [edges, envelopes]);
}

async function fetchPast(runId: string, signal: AbortSignal): Promise<readonly RunEvent[]> {
	const query = { limit: PAST_EVENTS_MAX, types: HANDOFF_EVENTS.join(",") };
	const params = { path: { run_id: runId }, query };
	return (await answer(api.GET("/api/runs/{run_id}/events", { params, signal }))).events;
}

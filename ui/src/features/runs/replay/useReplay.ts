/** The log of a run, read page by page, and the moment that is shown. */

import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { answer, api } from "../../../api/http";
import { useQueryParam } from "../../../components/useQueryParam";
import { ReplayLog } from "../../../model/replay";
import { emptyRun, type RunState } from "../../../model/run";
import type { RunSource } from "../graph/run-source";

const PAGE_EVENTS = 2_000;
/** The URL follows the slider when it rests: browsers refuse hundreds of changes a second. */
const URL_MS = 250;

export interface Replay {
	readonly log: ReplayLog;
	/** Rises with every page, so that what depends on the log is computed again. */
	readonly pages: number;
	readonly status: "loading" | "complete" | "failed";
	readonly error: unknown;
	readonly seq: number;
	readonly goTo: (seq: number) => void;
	readonly retry: () => void;
	readonly source: RunSource;
}

export function useReplay(runId: string): Replay {
	const log = useMemo(() => new ReplayLog(runId), [runId]);
	const { pages, status, error, retry } = useLogPages(runId, log);
	const [asked, setAsked] = useQueryParam("seq");
	const [chosen, setChosen] = useState<number | null>(null);
	const wanted = chosen ?? readSeq(asked);
	const last = log.lastSeq;
	const seq = wanted === null ? last : Math.min(wanted, last);
	const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
	const goTo = useCallback(
		(next: number) => {
			setChosen(next);
			clearTimeout(timer.current);
			timer.current = setTimeout(() => setAsked(String(next), { replace: true }), URL_MS);
		},
		[setAsked],
	);
	useEffect(() => () => clearTimeout(timer.current), []);
	const [moment] = useState(() => new Moment(runId));
	useEffect(() => {
		const event = log.events[log.countUpTo(seq) - 1];
		moment.show(log.stateAt(seq), event === undefined ? null : Date.parse(event.ts));
	});
	return { log, pages, status, error, seq, goTo, retry, source: moment };
}

function readSeq(text: string | null): number | null {
	return text !== null && /^[0-9]{1,9}$/.test(text) ? Number(text) : null;
}

/** The state that is shown, in the form that the components of a run read. */
class Moment implements RunSource {
	readonly isPast = true;
	readonly #listeners = new Set<() => void>();
	#state: RunState;
	#time: number | null = null;

	constructor(runId: string) {
		this.#state = emptyRun(runId);
	}

	readonly state = (): RunState => this.#state;

	readonly subscribe = (listener: () => void): (() => void) => {
		this.#listeners.add(listener);
		return () => void this.#listeners.delete(listener);
	};

	readonly time = (): number | null => this.#time;

	show(state: RunState, time: number | null): void {
		if (state === this.#state) return;
		this.#state = state;
		this.#time = time;
		for (const listener of this.#listeners) listener();
	}
}

function useLogPages(runId: string, log: ReplayLog) {
	const [pages, setPages] = useState(0);
	const [status, setStatus] = useState<Replay["status"]>("loading");
	const [error, setError] = useState<unknown>(null);
	const [attempt, setAttempt] = useState(0);
	// biome-ignore lint/correctness/useExhaustiveDependencies: another attempt goes on where the last one failed.
	useEffect(() => {
		const end = new AbortController();
		setStatus("loading");
		setError(null);
		readPages(runId, log, end.signal, () => setPages((count) => count + 1)).then(
			() => setStatus("complete"),
			(reason: unknown) => {
				if (end.signal.aborted) return;
				setError(reason);
				setStatus("failed");
			},
		);
		return () => end.abort();
	}, [runId, log, attempt]);
	return { pages, status, error, retry: () => setAttempt((count) => count + 1) };
}

async function readPages(runId: string, log: ReplayLog, signal: AbortSignal, onPage: () => void): Promise<void> {
	for (;;) {
		const query = { after: log.lastSeq, limit: PAGE_EVENTS };
		const params = { path: { run_id: runId }, query };
		const { events, page } = await answer(api.GET("/api/runs/{run_id}/events", { params, signal }));
		signal.throwIfAborted();
		const before = log.lastSeq;
		log.add(events);
		onPage();
		if (!page.hasMore || log.lastSeq === before) return;
	}
}

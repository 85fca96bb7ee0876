/**
 * A run's state as the components of its screens read it: live, or at one moment of a replay.
 *
 * Components take only their part (`useRun(state => state.nodes[id])`), so twenty streaming agents redraw twenty cards
 * and nothing else. A selector must return something that stays the same object while nothing changed.
 */

import { createContext, useContext, useSyncExternalStore } from "react";
import type { LiveRun } from "../../../api/live-run";
import { emptyRun, type RunState } from "../../../model/run";

export interface RunSource {
	readonly state: () => RunState;
	readonly subscribe: (listener: () => void) => () => void;
	/** Whether this is a moment of the past: nothing can be done there. */
	readonly isPast: boolean;
	/** The time of that moment; null where the time is now. */
	readonly time: () => number | null;
}

export const RunSourceContext = createContext<RunSource | null>(null);

export function useRunSource(): RunSource {
	const source = useContext(RunSourceContext);
	if (source === null) throw new Error("a component of a run is outside of its run");
	return source;
}

/** One part of the run. */
export function useRun<Part>(select: (state: RunState) => Part): Part {
	const source = useRunSource();
	return useSyncExternalStore(source.subscribe, () => select(source.state()));
}

/** The source of a run that is followed live. */
export function liveSource(run: LiveRun): RunSource {
	const nothing = emptyRun(run.runId);
	return {
		state() {
			const view = run.view();
			return view.status === "shown" ? view.state : nothing;
		},
		subscribe: run.subscribe,
		isPast: false,
		time: () => null,
	};
}

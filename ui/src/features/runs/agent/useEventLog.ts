import { useEffect, useMemo, useSyncExternalStore } from "react";
import { EventLog, type EventLogOptions, type EventLogView } from "../../../api/event-log";
import type { LiveRun } from "../../../api/live-run";
import { useLiveRunHandle } from "../../../api/window";

export interface ShownEventLog<State> {
	readonly view: EventLogView<State>;
	readonly loadOlder: () => void;
	readonly retry: () => void;
}

/** Follows a part of a run's events. `make` is called once for each `key`, which names the part. */
export function useEventLog<State>(
	run: string,
	key: string,
	make: (run: LiveRun) => EventLogOptions<State>,
): ShownEventLog<State> {
	const live = useLiveRunHandle(run);
	// biome-ignore lint/correctness/useExhaustiveDependencies: `key` stands for what `make` makes.
	const log = useMemo(() => new EventLog(make(live)), [live, key]);
	useEffect(() => log.start(), [log]);
	const view = useSyncExternalStore(log.subscribe, log.view);
	return { view, loadOlder: log.loadOlder, retry: log.retry };
}

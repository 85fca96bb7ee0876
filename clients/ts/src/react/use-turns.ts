/** A context's turns, live: see {@link TurnLog}, which does the work. */

import { useMemo, useSyncExternalStore } from "react";
import type { ContextId } from "../http/ids.js";
import { useTurnkeep } from "./provider.js";
import { TurnLog, type TurnLogState, type UseTurnsOptions } from "./turn-log.js";

/** The result of `useTurns`. */
export type UseTurns = TurnLogState & {
	/** Fetches the page before the oldest turn. */
	readonly loadOlder: () => void;
};

/** The newest turns of a context, older ones on demand, and new ones as they come. */
export function useTurns(contextId: ContextId, options: UseTurnsOptions = {}): UseTurns {
	const { client, hub } = useTurnkeep();
	// Options are compared by value, so that a caller may write them in place.
	const wanted = JSON.stringify(options);
	const log = useMemo(
		() => new TurnLog(client, hub, contextId, JSON.parse(wanted) as UseTurnsOptions),
		[client, hub, contextId, wanted],
	);
	const state = useSyncExternalStore(log.subscribe, log.snapshot, log.snapshot);
	return useMemo(() => ({ ...state, loadOlder: log.loadOlder }), [state, log]);
}

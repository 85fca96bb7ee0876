/** Compares what the UI folds from events with the snapshot of the server. */

import type { RunState } from "../src/model/run.ts";

/** The fields of a snapshot, without those that no event records and without those that have no value. */
export function comparable(snapshot: object): unknown {
	const withoutConnections = (name: string, value: unknown) =>
		name === "connection" ? undefined : (value ?? undefined);
	return JSON.parse(JSON.stringify(snapshot), withoutConnections);
}

/** The part of a state that a snapshot has. */
export function stateOf({ run, nodes, edges, artifacts, lastSeq }: RunState): unknown {
	return comparable({ ...run, nodes, edges, artifacts, lastSeq });
}

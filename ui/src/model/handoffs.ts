/**
 * The handoffs of a run by edge: how many wait in an inbox or for a check, and how many there were.
 *
 * A snapshot of a run does not have them, so they are folded from their events, which `HANDOFF_EVENTS` names.
 */

import type { EnvelopeState, RunEdge, RunEvent, TrackedEnvelope } from "./run";
import { applyEvents, emptyRun, type RunState } from "./run";

export const HANDOFF_EVENTS = ["handoff.sent", "handoff.held", "handoff.refused", "turn.status"] as const;

/** Whether an event is one of those. */
export function isHandoffEvent(event: RunEvent): boolean {
	return HANDOFF_EVENTS.some((type) => type === event.type);
}

/** Envelopes in the order of their events, with what is known of each. */
export class HandoffLog {
	#state: RunState;
	#pending: RunEvent[] | null = [];

	constructor(runId: string) {
		this.#state = emptyRun(runId);
	}

	/** The past. Events that came meanwhile follow. */
	begin(past: readonly RunEvent[]): void {
		const later = this.#pending ?? [];
		this.#pending = null;
		this.#state = applyEvents(this.#state, [...past, ...later]);
	}

	/** What just happened; returns whether it concerns a handoff. */
	add(events: readonly RunEvent[]): boolean {
		const mine = events.filter(isHandoffEvent);
		if (mine.length === 0) return false;
		if (this.#pending !== null) this.#pending.push(...mine);
		else this.#state = applyEvents(this.#state, mine);
		return true;
	}

	get envelopes(): Readonly<Record<string, TrackedEnvelope>> {
		return this.#state.envelopes;
	}
}

export interface EdgeTraffic {
	/** Handoffs that wait, in an inbox or for a check. */
	readonly waiting: number;
	readonly total: number;
	/** The id of the newest one. */
	readonly newest: string | null;
	/** Whether the newest one went against the edge, from its end to its beginning. */
	readonly isNewestBack: boolean;
}

/** Traffic by edge. An edge without a handoff is not in it. */
export type Traffic = ReadonlyMap<string, EdgeTraffic>;

export const NO_TRAFFIC: EdgeTraffic = { waiting: 0, total: 0, newest: null, isNewestBack: false };

/** The edge that carries a handoff between two agents; null if they are not connected any more. */
export function edgeBetween(edges: Readonly<Record<string, RunEdge>>, from: string, to: string): string | null {
	return edgesByEnds(edges).get(`${from} ${to}`) ?? null;
}

function edgesByEnds(edges: Readonly<Record<string, RunEdge>>): ReadonlyMap<string, string> {
	const byEnds = new Map<string, string>();
	const all = Object.values(edges);
	// A reply may go back over a two-way edge, but an edge of its own direction comes first.
	for (const { id, from, to, bidirectional } of all) if (bidirectional) byEnds.set(`${to} ${from}`, id);
	for (const { id, from, to } of all) byEnds.set(`${from} ${to}`, id);
	return byEnds;
}

/** The traffic of each edge, by the edge's id. An envelope belongs to the first edge that can carry it. */
export function trafficOf(
	edges: Readonly<Record<string, RunEdge>>,
	envelopes: Readonly<Record<string, TrackedEnvelope>>,
): Traffic {
	const byEnds = edgesByEnds(edges);
	const traffic = new Map<string, EdgeTraffic & { newestSeq: number }>();
	for (const { envelope, state, seq } of Object.values(envelopes)) {
		const edge = byEnds.get(`${envelope.fromNodeId} ${envelope.toNodeId}`);
		if (edge === undefined) continue;
		const known = traffic.get(edge) ?? { ...NO_TRAFFIC, newestSeq: 0 };
		const isNewer = seq >= known.newestSeq;
		traffic.set(edge, {
			waiting: known.waiting + (isResting(state) ? 1 : 0),
			total: known.total + 1,
			newest: isNewer ? envelope.id : known.newest,
			isNewestBack: isNewer ? edges[edge]?.from !== envelope.fromNodeId : known.isNewestBack,
			newestSeq: isNewer ? seq : known.newestSeq,
		});
	}
	return traffic;
}

function isResting(state: EnvelopeState): boolean {
	switch (state.kind) {
		case "held":
		case "queued":
			return true;
		case "consumed":
		case "refused":
			return false;
	}
}

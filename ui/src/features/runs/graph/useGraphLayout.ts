/** The places of a run's cards, kept while this window is open, so that leaving the graph and coming back moves nothing. */

import { useCallback, useMemo, useState } from "react";
import { type LayoutEdge, layoutAll, layoutGraph, type Places, type Point } from "../../../model/graph-layout";
import type { RunEdge, RunNode } from "../../../model/run";
import { inCreationOrder } from "../../../model/run-words";
import { useRun } from "./run-source";

const RUNS_MAX = 20;
const kept = new Map<string, Places>();

function keep(runId: string, places: Places): void {
	kept.delete(runId);
	kept.set(runId, places);
	for (const oldest of kept.keys()) {
		if (kept.size <= RUNS_MAX) break;
		kept.delete(oldest);
	}
}

export interface GraphLayout {
	readonly places: Places;
	/** Puts a card somewhere else in this window. */
	readonly move: (id: string, to: Point) => void;
	/** Lays everything out anew; returns the places. */
	readonly tidy: () => Places;
}

export function useGraphLayout(runId: string): GraphLayout {
	const nodes = useRun((state) => state.nodes);
	const edges = useRun((state) => state.edges);
	const [moved, setMoved] = useState<Places>(new Map());
	const shape = shapeOf(nodes, edges);
	// The nodes change with every token; only their number, their edges and their places matter here.
	const places = useMemo(() => {
		const { cards, lines } = JSON.parse(shape) as Shape;
		const before = new Map([...(kept.get(runId) ?? []), ...moved]);
		const places = layoutGraph(cards, lines, before);
		// Places of agents that are gone are kept too: in a replay they come back.
		keep(runId, new Map([...before, ...places]));
		return places;
	}, [shape, moved, runId]);
	const move = useCallback((id: string, to: Point) => setMoved((places) => new Map(places).set(id, to)), []);
	const tidy = useCallback(() => {
		const { cards, lines } = JSON.parse(shape) as Shape;
		const all = layoutAll(cards, lines);
		kept.set(runId, all);
		setMoved(all);
		return all;
	}, [shape, runId]);
	return { places: useOverlaid(places, moved), move, tidy };
}

interface Shape {
	readonly cards: readonly { readonly id: string; readonly position: Point | null; readonly parentId: string | null }[];
	readonly lines: readonly LayoutEdge[];
}

function shapeOf(nodes: Readonly<Record<string, RunNode>>, edges: Readonly<Record<string, RunEdge>>): string {
	const shape: Shape = {
		cards: inCreationOrder(nodes).map(({ id, position, parentId }) => ({
			id,
			position: position ?? null,
			parentId: parentId ?? null,
		})),
		lines: Object.values(edges).map(({ from, to, type }) => ({ from, to, isReport: type === "report" })),
	};
	return JSON.stringify(shape);
}

/** A card that was just moved here stands there, also before the server has noted it. */
function useOverlaid(places: Places, moved: Places): Places {
	return useMemo(() => {
		if (moved.size === 0) return places;
		return new Map([...places].map(([id, place]) => [id, moved.get(id) ?? place] as const));
	}, [places, moved]);
}

/** The cards and lines that the canvas draws, from the run's state, the layout and the filter. */

import { useMemo, useRef } from "react";
import { CARD_HEIGHT, CARD_WIDTH, type Places } from "../../../model/graph-layout";
import { NO_TRAFFIC, type Traffic } from "../../../model/handoffs";
import type { CardData, CardNode } from "./AgentCard";
import type { HandoffFlowEdge } from "./HandoffEdge";
import { useRun } from "./run-source";

export interface GraphView {
	readonly places: Places;
	readonly traffic: Traffic | null;
	/** The agents that the filter lets through; null if there is no filter. */
	readonly shown: ReadonlySet<string> | null;
	readonly conflicts: ReadonlyMap<string, string>;
	readonly current: string | null;
	readonly selectedAgent: string | null;
	readonly selectedEdge: string | null;
	readonly canConnect: boolean;
	readonly onOpenAgent: (id: string) => void;
	readonly onOpenEdge: (id: string) => void;
	readonly onFocusAgent: (id: string) => void;
}

/** A card that did not change stays the same object: then it is not drawn again. */
export function useCards(view: GraphView): CardNode[] {
	const before = useRef(new Map<string, CardNode>());
	const { places, shown, conflicts, current, selectedAgent, canConnect, onOpenAgent, onFocusAgent } = view;
	return useMemo(() => {
		const cards = [...places].map(([id, position]): CardNode => {
			const data: CardData = {
				isCurrent: id === current,
				conflict: conflicts.get(id) ?? null,
				canConnect,
				onOpen: onOpenAgent,
				onFocus: onFocusAgent,
			};
			const card: CardNode = {
				id,
				type: "agent",
				position,
				data,
				width: CARD_WIDTH,
				height: CARD_HEIGHT,
				selected: id === selectedAgent,
				hidden: shown !== null && !shown.has(id),
			};
			const known = before.current.get(id);
			return known !== undefined && isSame(known, card) ? known : card;
		});
		before.current = new Map(cards.map((card) => [card.id, card]));
		return cards;
	}, [places, shown, conflicts, current, selectedAgent, canConnect, onOpenAgent, onFocusAgent]);
}

function isSame(one: CardNode, other: CardNode): boolean {
	return (
		one.position.x === other.position.x &&
		one.position.y === other.position.y &&
		one.selected === other.selected &&
		one.hidden === other.hidden &&
		one.data.isCurrent === other.data.isCurrent &&
		one.data.conflict === other.data.conflict &&
		one.data.canConnect === other.data.canConnect &&
		one.data.onOpen === other.data.onOpen &&
		one.data.onFocus === other.data.onFocus
	);
}

export function useLines(view: GraphView): HandoffFlowEdge[] {
	const edges = useRun((state) => state.edges);
	const { traffic, selectedEdge, onOpenEdge, shown } = view;
	return useMemo(
		() =>
			Object.values(edges).map(
				(edge): HandoffFlowEdge => ({
					id: edge.id,
					type: "handoff",
					source: edge.from,
					target: edge.to,
					selected: edge.id === selectedEdge,
					hidden: shown !== null && !(shown.has(edge.from) && shown.has(edge.to)),
					data: {
						edge,
						traffic: traffic === null ? undefined : (traffic.get(edge.id) ?? NO_TRAFFIC),
						onOpen: onOpenEdge,
					},
				}),
			),
		[edges, traffic, selectedEdge, onOpenEdge, shown],
	);
}

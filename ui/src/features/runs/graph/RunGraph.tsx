/**
 * The canvas of a run's graph: a chunk of its own, since most pages never show it.
 *
 * Everything that can be done here can be done in the list of the same screen.
 */

import "@xyflow/react/dist/base.css";
import { type Connection, type NodeChange, Panel, ReactFlow, ReactFlowProvider, useReactFlow } from "@xyflow/react";
import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { IconButton } from "../../../components/Button";
import type { Traffic } from "../../../model/handoffs";
import { AgentCard, type CardNode } from "./AgentCard";
import { HandoffEdge } from "./HandoffEdge";
import css from "./RunGraph.module.css";
import { useRunSource } from "./run-source";
import { type GraphView, useCards, useLines } from "./useGraphItems";
import { useGraphKeys } from "./useGraphKeys";
import { useGraphLayout } from "./useGraphLayout";
import type { GraphActions } from "./useRunScreen";
import { useSavedPlaces } from "./useSavedPlaces";

const NODE_TYPES = { agent: AgentCard };
const EDGE_TYPES = { handoff: HandoffEdge };
const FIT = { padding: 0.08, maxZoom: 1, minZoom: 0.05 };

export interface RunGraphProps {
	readonly runId: string;
	readonly traffic: Traffic | null;
	readonly shown: ReadonlySet<string> | null;
	readonly conflicts: ReadonlyMap<string, string>;
	readonly selectedAgent: string | null;
	readonly selectedEdge: string | null;
	readonly actions: GraphActions;
}

export default function RunGraph(props: RunGraphProps) {
	return (
		<ReactFlowProvider>
			<Canvas {...props} />
		</ReactFlowProvider>
	);
}

/** The library's own words name keys that this graph does not have. */
const SPOKEN = {
	"node.a11yDescription.default": "Enter shows the agent’s details. ? lists the keys.",
	"edge.a11yDescription.default": "Enter shows the connection’s details.",
};

function Canvas(props: RunGraphProps) {
	const { runId, traffic, shown, conflicts, selectedAgent, selectedEdge, actions } = props;
	const frame = useRef<HTMLDivElement>(null);
	const { isPast } = useRunSource();
	const { places, move, tidy } = useGraphLayout(runId);
	const [focused, setFocused] = useState<string | null>(null);
	const save = useSavedPlaces(runId);
	const current =
		[focused, selectedAgent].find((id) => id !== null && places.has(id)) ?? places.keys().next().value ?? null;
	const view: GraphView = {
		places,
		traffic,
		shown,
		conflicts,
		current,
		selectedAgent,
		selectedEdge,
		canConnect: !isPast,
		onOpenAgent: actions.openAgent,
		onOpenEdge: actions.openEdge,
		onFocusAgent: setFocused,
	};
	const refit = useRefit(frame);
	useGraphKeys({ frame, places, actions, shown });
	const onNodesChange = useCallback(
		(changes: NodeChange<CardNode>[]) => {
			for (const change of changes) {
				if (change.type === "position" && change.position !== undefined) move(change.id, change.position);
			}
		},
		[move],
	);
	const onConnect = ({ source, target }: Connection) => actions.connect(source, target);
	return (
		<section ref={frame} className={css.frame} aria-label="Graph of the agents. The list has the same, as text.">
			<Arrow />
			<ReactFlow
				nodes={useCards(view)}
				edges={useLines(view)}
				nodeTypes={NODE_TYPES}
				edgeTypes={EDGE_TYPES}
				onNodesChange={onNodesChange}
				onNodeDragStop={(_event, node) => !isPast && save(node.id, node.position)}
				onConnect={onConnect}
				fitView
				onMoveStart={(event) => event !== null && refit.stop()}
				fitViewOptions={FIT}
				minZoom={0.05}
				maxZoom={2}
				onlyRenderVisibleElements={places.size > 60}
				nodesFocusable={false}
				edgesFocusable={false}
				nodesDraggable={!isPast}
				deleteKeyCode={null}
				selectionKeyCode={null}
				multiSelectionKeyCode={null}
				disableKeyboardA11y
				ariaLabelConfig={SPOKEN}
				onPaneClick={actions.close}
				proOptions={{ hideAttribution: true }}
			>
				<Panel position="bottom-left">
					<Tools onTidy={() => tidy()} />
				</Panel>
			</ReactFlow>
		</section>
	);
}

/** Until somebody moves the picture, it fits its frame, whatever opens beside it. */
function useRefit(frame: RefObject<HTMLElement | null>) {
	const flow = useReactFlow();
	const isMoved = useRef(false);
	useEffect(() => {
		const element = frame.current;
		if (element === null) return;
		const observer = new ResizeObserver(() => {
			// The canvas learns its new size from an observer of its own.
			if (!isMoved.current) requestAnimationFrame(() => void flow.fitView(FIT));
		});
		observer.observe(element);
		return () => observer.disconnect();
	}, [flow, frame]);
	return {
		stop: () => {
			isMoved.current = true;
		},
	};
}

function Tools({ onTidy }: { readonly onTidy: () => void }) {
	const flow = useReactFlow();
	return (
		<div className={css.tools}>
			<IconButton label="Zoom in" icon="plus" onClick={() => void flow.zoomIn()} />
			<IconButton label="Zoom out" icon="minus" onClick={() => void flow.zoomOut()} />
			<IconButton label="Show all agents" icon="fit" onClick={() => void flow.fitView(FIT)} />
			<IconButton
				label="Lay out anew"
				icon="runs"
				onClick={() => {
					onTidy();
					requestAnimationFrame(() => void flow.fitView(FIT));
				}}
			/>
		</div>
	);
}

/** The arrow head of every line. */
function Arrow() {
	return (
		<svg className={css.arrow} aria-hidden="true">
			<defs>
				<marker
					id="handoff-arrow"
					viewBox="0 0 10 10"
					refX="9"
					refY="5"
					markerWidth="9"
					markerHeight="9"
					markerUnits="userSpaceOnUse"
					orient="auto-start-reverse"
				>
					<path d="M0 0 10 5 0 10z" />
				</marker>
			</defs>
		</svg>
	);
}

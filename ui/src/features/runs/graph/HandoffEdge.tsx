/** An edge of the graph. A handoff moves along it once and then rests as a count. */

import { BaseEdge, type Edge, EdgeLabelRenderer, type EdgeProps, getBezierPath, useStore } from "@xyflow/react";
import { memo, useRef } from "react";
import { cx } from "../../../components/cx";
import type { EdgeTraffic } from "../../../model/handoffs";
import type { RunEdge } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";
import css from "./HandoffEdge.module.css";

export interface EdgeData extends Record<string, unknown> {
	readonly edge: RunEdge;
	/** Undefined until the past handoffs are known. */
	readonly traffic: EdgeTraffic | undefined;
	readonly onOpen: (id: string) => void;
}

export type HandoffFlowEdge = Edge<EdgeData, "handoff">;

/** Labels of edges are read from near only. */
const LABEL_ZOOM = 0.6;

export const HandoffEdge = memo(function HandoffEdge(props: EdgeProps<HandoffFlowEdge>) {
	const { id, data, selected = false } = props;
	const [path, labelX, labelY] = getBezierPath(props);
	const isNear = useStore((state) => state.transform[2] >= LABEL_ZOOM);
	if (data === undefined) return null;
	const { edge, traffic } = data;
	const waiting = traffic?.waiting ?? 0;
	const className = cx(
		css.path,
		edge.type === "report" && css.report,
		waiting > 0 && css.waiting,
		selected && css.selected,
	);
	return (
		<>
			<BaseEdge
				id={id}
				path={path}
				className={className}
				interactionWidth={16}
				markerEnd="url(#handoff-arrow)"
				{...(edge.bidirectional ? { markerStart: "url(#handoff-arrow)" } : {})}
			/>
			{traffic !== undefined && <MovingHandoff path={path} traffic={traffic} />}
			{(isNear || selected || waiting > 0) && (
				<EdgeLabelRenderer>
					<button
						type="button"
						// The drawer of an agent lists its edges for the keyboard; here two hundred more stops would be in the way.
						tabIndex={-1}
						title={titleOf(edge, traffic)}
						className={cx(css.label, "nopan", selected && css.labelSelected, waiting > 0 && css.labelWaiting)}
						style={{ transform: `translate(-50%, -50%) translate(${labelX}px, ${labelY}px)` }}
						onClick={() => data.onOpen(id)}
					>
						{labelOf(edge, traffic)}
					</button>
				</EdgeLabelRenderer>
			)}
		</>
	);
});

function labelOf(edge: RunEdge, traffic: EdgeTraffic | undefined): string {
	const label = firstLine(edge.label, 24) || edge.type;
	const gate = edge.gate ? " · checked" : "";
	if (traffic === undefined || traffic.total === 0) return `${label}${gate}`;
	return `${label}${gate} · ${traffic.waiting > 0 ? `${traffic.waiting} waiting` : traffic.total}`;
}

function titleOf(edge: RunEdge, traffic: EdgeTraffic | undefined): string {
	const counts = traffic === undefined ? "" : `: ${traffic.total} handoffs, ${traffic.waiting} waiting`;
	return `${firstLine(edge.label, 80) || edge.type}${counts}`;
}

/** A dot for the newest handoff, if it came while the graph was shown. */
function MovingHandoff({ path, traffic }: { readonly path: string; readonly traffic: EdgeTraffic }) {
	const { newest } = traffic;
	const first = useRef(newest);
	if (newest === null || newest === first.current) return null;
	return (
		<circle
			key={newest}
			r={6}
			className={cx(css.moving, traffic.isNewestBack && css.back)}
			style={{ offsetPath: `path("${path}")` }}
		/>
	);
}

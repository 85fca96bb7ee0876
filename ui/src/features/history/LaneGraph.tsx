/** The lanes beside one turn. Decoration: which histories a turn belongs to is said in words beside it. */

import { cx } from "../../components/cx";
import type { DagRow } from "../../model/dag";
import css from "./History.module.css";

const LANE_PX = 12;
const ROW_PX = 28;
const MIDDLE = ROW_PX / 2;
/** Lanes beyond this are drawn on top of each other, so that the words keep their room. */
const LANES_MAX = 12;

export function LaneGraph({ row, lanes }: { readonly row: DagRow; readonly lanes: number }) {
	const width = Math.min(lanes, LANES_MAX) * LANE_PX;
	const at = x(row.lane);
	return (
		<svg className={css.graph} width={width} height={ROW_PX} viewBox={`0 0 ${width} ${ROW_PX}`} aria-hidden="true">
			{row.through.map((lane) => (
				<Line key={lane} lane={lane} path={`M${x(lane)} 0V${ROW_PX}`} />
			))}
			{row.joins.map((lane) => (
				<Line key={lane} lane={lane} path={`M${x(lane)} 0C${x(lane)} ${MIDDLE} ${x(lane)} ${MIDDLE} ${at} ${MIDDLE}`} />
			))}
			{row.hasChild && <Line lane={row.lane} path={`M${at} 0V${MIDDLE}`} />}
			{row.hasParent && <Line lane={row.lane} path={`M${at} ${MIDDLE}V${ROW_PX}`} />}
			<circle cx={at} cy={MIDDLE} r={3.5} className={cx(css.node, row.heads.length > 0 && css.headNode)} />
		</svg>
	);
}

function Line({ lane, path }: { readonly lane: number; readonly path: string }) {
	return <path d={path} className={cx(css.line, lane === 0 && css.mainLine)} />;
}

function x(lane: number): number {
	return Math.min(lane, LANES_MAX - 1) * LANE_PX + LANE_PX / 2;
}

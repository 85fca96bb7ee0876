/** All turns as rows with lanes, newest first. Only what is in view is in the document. */

import { useMemo, useRef, useState } from "react";
import { useSearch } from "wouter";
import { listBindings, useKeys } from "../../components/keys";
import { VirtualList } from "../../components/VirtualList";
import { type DagBranch, dagWidth, layoutDag } from "../../model/dag";
import css from "./History.module.css";
import type { Lineage, Related } from "./lineage";
import { TurnRow } from "./TurnRow";

export interface HistoryGraphProps {
	readonly lineage: Lineage;
	readonly related: Related | undefined;
	/** The turn that is open. */
	readonly current: string | null;
	readonly onReachEnd: () => void;
}

const ROW_PX = 28;

export function HistoryGraph({ lineage, related, current, onReachEnd }: HistoryGraphProps) {
	const frame = useRef<HTMLDivElement>(null);
	const search = useSearch();
	const main = useMemo(() => mainBranch(lineage), [lineage]);
	const rows = useMemo(() => layoutDag([main, ...(related?.branches ?? [])]), [main, related]);
	const lanes = useMemo(() => dagWidth(rows), [rows]);
	// Only where it opens: turns that come later must not move what is read.
	const [scrollTo] = useState(() => {
		const at = rows.findIndex(({ turn }) => turn.id === current);
		return at < 0 ? null : at;
	});
	useKeys(
		"History",
		listBindings(() => frame.current),
	);
	return (
		<div ref={frame} className={css.frame}>
			<VirtualList
				label="Turns, newest first"
				items={rows}
				itemKey={({ turn }) => turn.id}
				estimate={ROW_PX}
				scrollTo={scrollTo}
				onReachEnd={onReachEnd}
				renderItem={(row) => (
					<TurnRow
						row={row}
						lanes={lanes}
						digits={rows[0]?.turn.id.length ?? 1}
						context={main.context}
						search={search}
						isCurrent={row.turn.id === current}
					/>
				)}
			/>
		</div>
	);
}

function mainBranch({ context, turns }: Lineage): DagBranch {
	return { context: context.context_id, labels: context.labels, head: turns[0]?.id ?? null, turns };
}

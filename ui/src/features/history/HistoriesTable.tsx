/** Histories as a table. On a narrow window columns go: created, then labels where the origin says enough. */

import { paths } from "../../app/paths";
import { type Column, DataTable } from "../../components/DataTable";
import { Time } from "../../components/Time";
import { labelWords, originRef, ownLabels } from "../../model/history";
import { formatCount } from "../../model/quantity";
import type { Schema } from "../../model/schema";
import { firstLine, safeText } from "../../model/text-safety";
import css from "./History.module.css";
import { OriginChips } from "./OriginChips";

type Context = Schema<"Context">;

export interface HistoriesTableProps {
	readonly label: string;
	readonly contexts: readonly Context[];
	/** Shows only the histories with this label. */
	readonly onLabel: (label: string) => void;
}

export function HistoriesTable({ label, contexts, onLabel }: HistoriesTableProps) {
	const hasOrigins = contexts.some(({ labels }) => originRef(labels) !== null);
	const hasLabels = !hasOrigins || contexts.some(({ labels }) => Object.keys(ownLabels(labels)).length > 0);
	const labelColumn: Column<Context> = {
		id: "labels",
		header: "Labels",
		minWidth: 160,
		grow: 1,
		...(hasOrigins ? { drop: 2 } : {}),
		cell: (each) => labelCell(each, onLabel),
	};
	const columns: Column<Context>[] = [
		{ id: "id", header: "History", minWidth: 70, cell: ({ context_id }) => context_id },
		...(hasOrigins ? [ORIGIN_COLUMN] : []),
		...(hasLabels ? [labelColumn] : []),
		{ id: "turns", header: "Turns", minWidth: 90, align: "end", cell: turnCount },
		{
			id: "created",
			header: "Created",
			minWidth: 110,
			drop: 1,
			align: "end",
			cell: ({ created_at }) => <Time at={created_at} />,
		},
	];
	return (
		<DataTable
			label={label}
			columns={columns}
			rows={contexts}
			rowKey={({ context_id }) => context_id}
			rowHref={({ context_id }) => paths.history(context_id)}
			rowRef={({ context_id }) => ({ kind: "context", id: context_id })}
		/>
	);
}

function labelCell({ labels }: Context, onLabel: (label: string) => void) {
	const words = labelWords(ownLabels(labels));
	if (words.length === 0) return <span className={css.soft}>none</span>;
	return (
		<span className={css.tools}>
			{words.map((word) => (
				<button
					key={word}
					type="button"
					className={css.label}
					title={`Show only histories with ${safeText(word)}`}
					onClick={() => onLabel(word)}
				>
					{firstLine(word, 60)}
				</button>
			))}
		</span>
	);
}

const ORIGIN_COLUMN: Column<Context> = {
	id: "origin",
	header: "Belongs to",
	minWidth: 170,
	grow: 1,
	cell: ({ labels }) => <OriginChips labels={labels} />,
};

function turnCount({ head_turn_id, head_depth, head_lost }: Context) {
	if (head_lost) return "head lost";
	return formatCount(head_turn_id === "0" ? 0 : head_depth + 1);
}

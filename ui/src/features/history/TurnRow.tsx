/** A turn of a history: its lanes, its number, what it says, and whose head it is. */

import { Link } from "wouter";
import { paths } from "../../app/paths";
import { Chip } from "../../components/Chip";
import { cx } from "../../components/cx";
import { Time } from "../../components/Time";
import type { DagBranch, DagRow } from "../../model/dag";
import { labelWords } from "../../model/history";
import { firstLine, safeText } from "../../model/text-safety";
import css from "./History.module.css";
import { LaneGraph } from "./LaneGraph";
import { useTurnWords } from "./useTurnWords";

export interface TurnRowProps {
	readonly row: DagRow;
	readonly lanes: number;
	/** How many digits the longest number has. */
	readonly digits: number;
	/** The history that is open. */
	readonly context: string;
	/** The query of the URL, which stays when another turn is opened. */
	readonly search: string;
	readonly isCurrent: boolean;
}

export function TurnRow({ row, lanes, digits, context, search, isCurrent }: TurnRowProps) {
	const { turn, branch, heads } = row;
	const words = useTurnWords(branch, turn);
	return (
		<div className={cx(css.row, isCurrent && css.current)}>
			<Link
				href={`${paths.historyTurn(context, turn.id)}${search === "" ? "" : `?${search}`}`}
				className={css.link}
				data-item=""
				data-ref={`turn:${turn.id}`}
				aria-current={isCurrent || undefined}
			>
				<LaneGraph row={row} lanes={lanes} />
				<span className={css.id} style={{ minWidth: `${digits}ch` }}>
					{turn.id}
				</span>
				{words?.kind === "bad" ? (
					<span className={css.bad}>{`✕ ${words.code}: ${firstLine(words.message, 160)}`}</span>
				) : (
					<span className={css.words}>{words === undefined ? "…" : words.text || "nothing to read"}</span>
				)}
				<span className={css.type}>{safeText(turn.type)}</span>
				<span className={css.age}>
					<Time at={turn.createdAt} />
				</span>
			</Link>
			{heads.map((head) => (
				<HeadChip key={head.context} head={head} isOpen={head.context === context} />
			))}
		</div>
	);
}

function HeadChip({ head, isOpen }: { readonly head: DagBranch; readonly isOpen: boolean }) {
	const labels = labelWords(head.labels).join(", ");
	if (isOpen) {
		return (
			<span className={css.head}>
				<Chip tone="accent">live head</Chip>
			</span>
		);
	}
	return (
		<Link href={paths.history(head.context)} className={css.head} title={safeText(labels)}>
			<Chip>{`history ${head.context}${labels === "" ? "" : ` · ${firstLine(labels, 40)}`}`}</Chip>
		</Link>
	);
}

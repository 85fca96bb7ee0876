/** The turns of two histories after their last common one, oldest first, side by side. */

import { useMemo } from "react";
import { Link } from "wouter";
import { paths } from "../../app/paths";
import { EmptyState } from "../../components/EmptyState";
import { Time } from "../../components/Time";
import { VirtualList } from "../../components/VirtualList";
import { type DagBranch, type DagTurn, lastCommonTurn } from "../../model/dag";
import { labelWords } from "../../model/history";
import { formatNumberOf } from "../../model/quantity";
import { firstLine } from "../../model/text-safety";
import css from "./History.module.css";
import type { Lineage } from "./lineage";
import { useTurnWords } from "./useTurnWords";

export function ComparedTurns({ a, b }: { readonly a: Lineage; readonly b: Lineage }) {
	const common = useMemo(() => lastCommonTurn(a.turns, b.turns), [a.turns, b.turns]);
	const left = useMemo(() => branchAfter(a, common), [a, common]);
	const right = useMemo(() => branchAfter(b, common), [b, common]);
	if (common === null && a.context.context_id !== b.context.context_id) {
		return (
			<EmptyState title="No common turn">
				{a.hasMore || b.hasMore
					? "Their newest 10 000 turns have none in common."
					: "These histories began with different turns."}
			</EmptyState>
		);
	}
	const length = Math.max(left.own.length, right.own.length);
	const rows = Array.from({ length }, (_, at) => at);
	return (
		<div className={css.compare}>
			<p>
				{common === null ? (
					"Neither has a turn."
				) : (
					<>
						{`They share ${formatNumberOf(common.depth + 1, "turn")}, up to `}
						<Link href={paths.historyTurn(left.branch.context, common.id)}>{`turn ${common.id}`}</Link>.
					</>
				)}
			</p>
			<div className={css.pair}>
				<SideHead side={left} />
				<SideHead side={right} />
			</div>
			<div className={css.compareList}>
				<VirtualList
					label="Turns after the common one"
					items={rows}
					itemKey={(at) => at}
					estimate={36}
					renderItem={(at) => (
						<div className={css.pair}>
							<SideTurn branch={left.branch} turn={left.own[at]} />
							<SideTurn branch={right.branch} turn={right.own[at]} />
						</div>
					)}
				/>
			</div>
		</div>
	);
}

interface Side {
	readonly branch: DagBranch;
	/** Its turns after the common one, oldest first. */
	readonly own: readonly DagTurn[];
}

function branchAfter({ context, turns }: Lineage, common: DagTurn | null): Side {
	const at = common === null ? turns.length : turns.findIndex(({ id }) => id === common.id);
	const head = turns[0]?.id ?? null;
	const branch = { context: context.context_id, labels: context.labels, head, turns };
	return { branch, own: turns.slice(0, at < 0 ? turns.length : at).toReversed() };
}

function SideHead({ side: { branch, own } }: { readonly side: Side }) {
	const labels = labelWords(branch.labels).join(", ");
	return (
		<h2 className={css.sideHead}>
			<Link href={paths.history(branch.context)}>{`History ${branch.context}`}</Link>
			<span className={css.soft}>
				{` ${own.length === 0 ? "has no further turn" : formatNumberOf(own.length, "own turn")}`}
				{labels !== "" && ` · ${firstLine(labels, 60)}`}
			</span>
		</h2>
	);
}

function SideTurn({ branch, turn }: { readonly branch: DagBranch; readonly turn: DagTurn | undefined }) {
	if (turn === undefined) return <div className={css.side} />;
	return <ShownTurn branch={branch} turn={turn} />;
}

function ShownTurn({ branch, turn }: { readonly branch: DagBranch; readonly turn: DagTurn }) {
	const words = useTurnWords(branch, turn);
	return (
		<div className={css.side}>
			<Link href={paths.historyTurn(branch.context, turn.id)} data-item="">
				{`Turn ${turn.id}`}
			</Link>{" "}
			{words?.kind === "bad" ? (
				<span className={css.lost}>{`✕ ${words.code}: ${firstLine(words.message, 160)}`}</span>
			) : (
				(words?.text ?? "…")
			)}{" "}
			<span className={css.soft}>
				<Time at={turn.createdAt} />
			</span>
		</div>
	);
}

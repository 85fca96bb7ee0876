/** What is known about a history besides its turns: labels, origin, forks, and what is missing. */

import type { UseQueryResult } from "@tanstack/react-query";
import { Chip } from "../../components/Chip";
import { Time } from "../../components/Time";
import { labelWords, ownLabels } from "../../model/history";
import { formatNumberOf } from "../../model/quantity";
import { safeText } from "../../model/text-safety";
import css from "./History.module.css";
import type { Lineage, Related } from "./lineage";
import { OriginChips } from "./OriginChips";

export interface HistoryLabelsProps {
	readonly lineage: Lineage;
	readonly related: Pick<UseQueryResult<Related>, "data" | "isFetching" | "error">;
}

export function HistoryLabels({ lineage, related }: HistoryLabelsProps) {
	const { context } = lineage;
	const turns = context.head_turn_id === "0" ? 0 : context.head_depth + 1;
	return (
		<div className={css.tools}>
			<OriginChips labels={context.labels} />
			{labelWords(ownLabels(context.labels)).map((label) => (
				<Chip key={label}>{safeText(label)}</Chip>
			))}
			<span className={css.soft}>
				{formatNumberOf(turns, "turn")} · created <Time at={context.created_at} /> · <Forks {...related} />
			</span>
			{context.head_lost && <span className={css.lost}>The turn at its head was lost to damage.</span>}
			{context.creation_lost && (
				<span className={css.lost}>The record of its creation was lost to damage, and its labels with it.</span>
			)}
		</div>
	);
}

function Forks({ data, isFetching, error }: HistoryLabelsProps["related"]) {
	if (data === undefined) {
		if (error !== null) return "the other histories could not be read, so forks are missing";
		return isFetching ? "looks for forks" : "no forks";
	}
	const count = formatNumberOf(data.branches.length, "other history", "other histories");
	const shared = data.branches.length === 0 ? "no forks" : `shares turns with ${count}`;
	return data.skipped === 0 ? shared : `${shared}; only the newest histories were looked at`;
}

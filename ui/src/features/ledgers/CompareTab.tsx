/** What two people could not both see: why one did not know what the other knew. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { SelectField } from "../../components/Field";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { type Entry, type Ledger, labelOf, OPERATOR_ID } from "../../model/ledger";
import { wholeTime } from "../../model/ledger-search";
import type { Schema } from "../../model/schema";
import { firstLine } from "../../model/text-safety";
import { AtField } from "./AtField";
import { EntryList } from "./EntryList";
import css from "./Ledgers.module.css";

export interface CompareTabProps {
	readonly world: string;
	readonly ledger: Ledger;
	readonly person: string;
	/** With whom it can be compared, besides the operator. */
	readonly people: readonly string[];
}

const SHOWN_MAX = 200;

export function CompareTab({ world, ledger, person, people }: CompareTabProps) {
	const [vs, setVs] = useQueryParam("vs");
	const [at, setAt] = useQueryParam("at");
	const { data, error, isLoading, refetch } = useQuery({
		queryKey: keys.world(world, "difference", person, vs ?? "", at ?? ""),
		queryFn: ({ signal }) => fetchDifference(world, person, vs ?? "", at, signal),
		enabled: vs !== null,
		placeholderData: keepPreviousData,
	});
	const name = (id: string) => firstLine(labelOf(ledger, id));
	const others = [OPERATOR_ID, ...people].filter((id) => id !== person);
	return (
		<>
			<div className={css.fields}>
				<SelectField
					label={`Compare ${name(person)} with`}
					value={vs ?? ""}
					options={[{ value: "", label: "choose somebody" }, ...others.map((id) => ({ value: id, label: name(id) }))]}
					onChange={(next) => setVs(next === "" ? null : next)}
				/>
				<AtField ledger={ledger} at={at} onChange={(next) => setAt(next, { replace: true })} />
			</div>
			{vs === null && (
				<EmptyState title="Choose whom to compare with">
					What one of the two could see and the other could not would be here, with its audience.
				</EmptyState>
			)}
			{isLoading && <Skeleton lines={6} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{vs !== null && data !== undefined && (
				<>
					<div className={css.two}>
						<Side world={world} ledger={ledger} who={name(person)} other={name(vs)} entries={data.only_view} />
						<Side world={world} ledger={ledger} who={name(vs)} other={name(person)} entries={data.only_vs} />
					</div>
					{!data.complete && (
						<p className={css.after}>{`There is more: at most the newest ${SHOWN_MAX} entries of a side are shown.`}</p>
					)}
				</>
			)}
		</>
	);
}

async function fetchDifference(
	world: string,
	person: string,
	vs: string,
	at: string | null,
	signal: AbortSignal,
): Promise<Schema<"ViewDifference">> {
	const path = { world, person };
	const query = { audit: "1", vs, limit: SHOWN_MAX, ...(at === null ? {} : { as_of: wholeTime(at) }) };
	const found = await answer(api.GET("/v1/worlds/{world}/views/{person}", { params: { path, query }, signal }));
	if ("only_view" in found) return found;
	throw new Error("the server answered with one view");
}

interface SideProps {
	readonly world: string;
	readonly ledger: Ledger;
	readonly who: string;
	readonly other: string;
	readonly entries: readonly Entry[];
}

function Side({ world, ledger, who, other, entries }: SideProps) {
	return (
		<section aria-label={`Only ${who}`}>
			<h2>{`Only ${who} could see`}</h2>
			{entries.length === 0 ? (
				<p className={css.soft}>{`Nothing that ${other} could not see.`}</p>
			) : (
				<EntryList label={`Only ${who} could see`} world={world} ledger={ledger} entries={entries} />
			)}
		</section>
	);
}

/** What a person could see, now or at a time of the ledger. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { type Ledger, labelOf } from "../../model/ledger";
import { wholeTime } from "../../model/ledger-search";
import { formatCount } from "../../model/quantity";
import { firstLine } from "../../model/text-safety";
import { AtField } from "./AtField";
import { EntryList } from "./EntryList";
import css from "./Ledgers.module.css";
import { viewQuery } from "./ledger-queries";

export interface KnewTabProps {
	readonly world: string;
	readonly ledger: Ledger;
	readonly person: string;
}

/** The newest entries of a view; older ones are in the stream. */
const SHOWN_MAX = 200;

export function KnewTab({ world, ledger, person }: KnewTabProps) {
	const [at, setAt] = useQueryParam("at");
	const query = { audit: "1", limit: SHOWN_MAX, ...(at === null ? {} : { as_of: wholeTime(at) }) };
	const { data, error, isPending, refetch } = useQuery({
		...viewQuery(world, person, query),
		placeholderData: keepPreviousData,
	});
	const name = firstLine(labelOf(ledger, person));
	return (
		<>
			<div className={css.fields}>
				<AtField ledger={ledger} at={at} onChange={(next) => setAt(next, { replace: true })} />
			</div>
			{isPending && <Skeleton lines={6} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && data.entries.length === 0 && (
				<EmptyState title={`${name} could see nothing ${at === null ? "yet" : "then"}`}>
					What was written to everyone, or to {name}, by that time would be here.
				</EmptyState>
			)}
			{data !== undefined && data.entries.length > 0 && (
				<>
					<p role="status" className={css.soft}>
						{`${name} ${at === null ? "can" : "could"} see ${entriesWords(data.count)}`}
						{!data.complete && `; the newest ${data.entries.length} are shown`}.
					</p>
					<EntryList label="What they could see" world={world} ledger={ledger} entries={data.entries} />
				</>
			)}
		</>
	);
}

function entriesWords(count: number): string {
	return count === 1 ? "1 entry" : `${formatCount(count)} entries`;
}

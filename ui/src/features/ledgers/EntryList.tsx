/** A plain list of entries, as an audit reads them. */

import { useRef } from "react";
import { listBindings, useKeys } from "../../components/keys";
import { type Entry, type Eyes, type Ledger, labelOf, ledgerTime } from "../../model/ledger";
import { auditLine } from "../../model/ledger-stream";
import { StreamRow } from "./StreamRow";

export interface EntryListProps {
	/** What it lists. */
	readonly label: string;
	readonly world: string;
	readonly ledger: Ledger;
	readonly entries: readonly Entry[];
}

const AUDIT: Eyes = { kind: "audit" };

export function EntryList({ label, world, ledger, entries }: EntryListProps) {
	const list = useRef<HTMLUListElement>(null);
	useKeys(
		label,
		listBindings(() => list.current),
	);
	const dayOf = (entry: Entry | undefined) =>
		entry?.created_at_world == null ? null : (ledgerTime(entry.created_at_world, ledger.timezone)?.day ?? null);
	return (
		<ul ref={list} aria-label={label}>
			{entries.map((entry, at) => (
				<li key={entry.entry_id}>
					<StreamRow
						world={world}
						line={auditLine(entry, (id) => labelOf(ledger, id))}
						dayBefore={dayOf(entries[at - 1])}
						ledger={ledger}
						eyes={AUDIT}
					/>
				</li>
			))}
		</ul>
	);
}

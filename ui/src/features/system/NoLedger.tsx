/** What a page over ledgers shows where there is none of them, or not the one of the URL. */

import { Link } from "wouter";
import { paths, type SystemPage } from "../../app/paths";
import { EmptyState } from "../../components/EmptyState";

export interface NoLedgerProps {
	readonly page: SystemPage;
	/** The one that the URL names. */
	readonly name: string | null;
}

export function NoLedger({ page, name }: NoLedgerProps) {
	if (name === null)
		return (
			<EmptyState
				title="No ledgers yet"
				command="turnkeep world new payments --person CODER"
				action={<Link href={paths.ledgers({ new: "1" })}>Open a new ledger</Link>}
			>
				Tokens and audits belong to ledgers: a ledger is one shared history of a team.
			</EmptyState>
		);
	return (
		<EmptyState title="Not found" action={<Link href={paths.system(page)}>Choose another ledger</Link>}>
			{`There is no ledger called ${name} in this data directory. Perhaps the name is spelled differently.`}
		</EmptyState>
	);
}

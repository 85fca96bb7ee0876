/** The three places of a ledger. */

import { paths } from "../../app/paths";
import { LinkTabs } from "../../components/Tabs";
import { type Eyes, eyesQuery, type Ledger } from "../../model/ledger";

export interface LedgerTabsProps {
	readonly world: string;
	readonly current: "stream" | "search" | "people";
	readonly ledger: Ledger | undefined;
	readonly eyes: Eyes;
}

export function LedgerTabs({ world, current, ledger, eyes }: LedgerTabsProps) {
	const query = eyesQuery(eyes);
	return (
		<LinkTabs
			label="Parts of the ledger"
			current={current}
			tabs={[
				{ id: "stream", label: "Stream", href: paths.ledger(world, query) },
				{ id: "search", label: "Search", href: paths.ledgerSearch(world, { as: query.as ?? null }) },
				{ id: "people", label: "People", href: paths.people(world), count: ledger?.persons.length ?? 0 },
			]}
		/>
	);
}

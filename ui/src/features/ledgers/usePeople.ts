/** The people of a ledger whose view can be chosen. In an open one these are also the names that entries use. */

import { useQuery } from "@tanstack/react-query";
import { type Entry, knownPeople, type Ledger, OPERATOR_ID } from "../../model/ledger";
import { viewQuery } from "./ledger-queries";

/** So many of the newest entries are looked at for names. */
const NEWEST = 500;

export function usePeople(world: string, ledger: Ledger | undefined): readonly string[] {
	const { data } = useQuery({
		...viewQuery(world, OPERATOR_ID, { limit: NEWEST }),
		enabled: ledger?.registry === "OPEN",
	});
	return knownPeople(ledger, namedIn(data?.entries ?? []));
}

/** Who wrote these entries, and to whom they were addressed. */
function* namedIn(entries: readonly Entry[]): Generator<string> {
	for (const entry of entries) {
		yield entry.author.author_id;
		yield* entry.visibility.visible_to ?? [];
	}
}

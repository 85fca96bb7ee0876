/** The pages of a thing: its own, and those that show a side of it. */

import { type Ref, refKindWord } from "../model/refs";
import { pathOfRef, paths } from "./paths";

export interface RefPlace {
	readonly label: string;
	readonly path: string;
}

/** Its own page first. */
export function placesOfRef(ref: Ref): RefPlace[] {
	return [{ label: `Open the ${refKindWord(ref.kind)}`, path: pathOfRef(ref) }, ...sidesOf(ref)];
}

function sidesOf(ref: Ref): RefPlace[] {
	switch (ref.kind) {
		case "run":
			return [
				{ label: "Its changes", path: paths.changes(ref.id) },
				{ label: "Why is nothing happening?", path: paths.why(ref.id) },
				{ label: "Replay", path: paths.replay(ref.id) },
				{ label: "What waits for you in it", path: paths.inbox({ run: ref.id }) },
			];
		case "session":
			return [{ label: "Its terminal", path: paths.session(ref.id, { view: "terminal" }) }];
		case "world":
			return [
				{ label: "Search it", path: paths.ledgerSearch(ref.name) },
				{ label: "Its people", path: paths.people(ref.name) },
				{ label: "Its audit", path: paths.system("audit", { ledger: ref.name }) },
			];
		case "person":
			return [
				{ label: "See the ledger as this person", path: paths.ledger(ref.world, { as: ref.id }) },
				{ label: "Connect an agent", path: paths.person(ref.world, ref.id, { tab: "access" }) },
			];
		case "context":
			return [{ label: "Compare it with another history", path: paths.compare(ref.id, "") }];
		default:
			return [];
	}
}

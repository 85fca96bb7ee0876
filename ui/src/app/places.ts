/** The six places of the rail, in their order. */

import { paths } from "./paths";

export type PlaceId = "inbox" | "runs" | "sessions" | "ledgers" | "history" | "system";

export interface Place {
	readonly id: PlaceId;
	readonly label: string;
	readonly path: string;
	/** `g` and this letter goes there. */
	readonly letter: string;
}

export const PLACES: readonly Place[] = [
	{ id: "inbox", label: "Inbox", path: paths.inbox(), letter: "i" },
	{ id: "runs", label: "Runs", path: paths.runs(), letter: "r" },
	{ id: "sessions", label: "Sessions", path: paths.sessions(), letter: "s" },
	{ id: "ledgers", label: "Ledgers", path: paths.ledgers(), letter: "l" },
	{ id: "history", label: "History", path: paths.histories(), letter: "h" },
	{ id: "system", label: "System", path: paths.system(), letter: "y" },
];

export function placeOf(id: PlaceId): Place {
	const place = PLACES.find((each) => each.id === id);
	if (place === undefined) throw new Error(`there is no place ${id}`);
	return place;
}

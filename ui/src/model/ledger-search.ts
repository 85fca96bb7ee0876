/** A search of a ledger, as its URL and its request have it. */

import type { Schema } from "./schema";

export interface LedgerSearch {
	readonly q: string;
	/** Only entries of this author. */
	readonly by: string | null;
	/** From this local time or day of the ledger on. */
	readonly from: string | null;
	readonly to: string | null;
}

const RESULTS_MAX = 50;

export function readLedgerSearch(search: string): LedgerSearch {
	const params = new URLSearchParams(search);
	const get = (name: string) => params.get(name) || null;
	return { q: params.get("q") ?? "", by: get("by"), from: get("from"), to: get("to") };
}

/** Whether anything is asked for. */
export function isSearch(search: LedgerSearch): boolean {
	return search.q.trim() !== "" || search.by !== null || search.from !== null || search.to !== null;
}

export function searchTool(search: LedgerSearch): Schema<"ToolCall"> {
	const hasWindow = search.from !== null || search.to !== null;
	return {
		name: "LEDGER_SEARCH",
		query_text: search.q,
		constraints: {
			limit: RESULTS_MAX,
			...(search.by === null ? {} : { person_id: search.by }),
			...(hasWindow ? { time_window: { from: wholeTime(search.from), to: wholeTime(search.to) } } : {}),
		},
	};
}

/** A field for times leaves out the seconds; a local time of the API has them. */
export function wholeTime(time: string): string;
export function wholeTime(time: string | null): string | null;
export function wholeTime(time: string | null): string | null {
	return time !== null && /^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(time) ? `${time}:00` : time;
}

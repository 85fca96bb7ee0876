/** Search of the shell: what a text means, and which items it finds. */

import { parseRef, type Ref } from "./refs";

/** What a first character restricts the search to. */
export type SearchMode = "all" | "actions" | "people" | "ids";

export interface SearchQuery {
	readonly mode: SearchMode;
	/** The words to find, without the first character of the mode. */
	readonly text: string;
	/** Things that the text names directly. */
	readonly refs: readonly Ref[];
}

const MODES: Readonly<Record<string, SearchMode>> = { ">": "actions", "@": "people", "#": "ids" };

/** Reads what was typed. A pasted ref opens; a bare number, UUID or hash is tried as the ids that it may be. */
export function readSearch(typed: string): SearchQuery {
	const trimmed = typed.trim();
	const mode = MODES[trimmed.charAt(0)];
	const text = mode === undefined ? trimmed : trimmed.slice(1).trim();
	// `@last:3` names a captured turn, and no person.
	const ref = parseRef(trimmed) ?? parseRef(text);
	const refs = ref !== null ? [ref] : mode === undefined || mode === "ids" ? refsOfId(text) : [];
	return { mode: mode ?? "all", text, refs };
}

/** The things that a bare id may name. */
export function refsOfId(id: string): Ref[] {
	const candidates = ["turn", "ctx", "run", "node", "artifact", "envelope", "message", "entry"].map(
		(kind) => `${kind}:${id}`,
	);
	// A short hexadecimal word is more often a word than a hash.
	if (/^[0-9a-f]{8,64}$/.test(id)) candidates.push(`blob:${id}`);
	return candidates.map(parseRef).filter((ref) => ref !== null);
}

/** One thing that search can find. */
export interface SearchItem {
	readonly id: string;
	readonly group: SearchGroup;
	readonly label: string;
	/** More words that find it, shown behind the label. */
	readonly detail?: string;
}

/** The groups in the order in which they are shown. */
export const SEARCH_GROUPS = [
	"Open",
	"Actions",
	"Runs",
	"Agents",
	"Sessions",
	"Ledgers",
	"People",
	"Turns",
	"Types",
] as const;
export type SearchGroup = (typeof SEARCH_GROUPS)[number];

const PER_GROUP_MAX = 8;

/** The items that have all words, best first in each group, at most so many of a group. */
export function findItems<Item extends SearchItem>(items: readonly Item[], query: SearchQuery): Item[] {
	const words = query.text.toLowerCase().split(/\s+/).filter(Boolean);
	const wanted = items.filter((item) => isOfMode(item, query.mode));
	const scored = wanted.map((item) => ({ item, score: scoreOf(item, words) })).filter(({ score }) => score > 0);
	return SEARCH_GROUPS.flatMap((group) =>
		scored
			.filter(({ item }) => item.group === group)
			.toSorted((one, other) => other.score - one.score)
			.slice(0, PER_GROUP_MAX)
			.map(({ item }) => item),
	);
}

function isOfMode(item: SearchItem, mode: SearchMode): boolean {
	switch (mode) {
		case "all":
			return true;
		case "actions":
			return item.group === "Actions";
		case "people":
			return item.group === "People";
		case "ids":
			return item.group === "Open";
	}
}

/** 0 if a word is missing. The beginning of the label counts most, then the beginning of a word, then any place. */
function scoreOf(item: SearchItem, words: readonly string[]): number {
	// What the text names directly needs no words.
	if (item.group === "Open") return 1;
	const label = item.label.toLowerCase();
	const detail = item.detail?.toLowerCase() ?? "";
	let score = 1;
	for (const word of words) {
		const at = label.indexOf(word);
		if (at === 0) score += 8;
		else if (at > 0) score += /[\s\p{P}]/u.test(label.charAt(at - 1)) ? 4 : 2;
		else if (detail.includes(word)) score += 1;
		else return 0;
	}
	return score;
}

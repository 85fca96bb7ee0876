/**
 * A ledger as one reader sees it: whose eyes, names instead of ids, audiences in words, and the days of its own clock.
 *
 * The operator's id is the same in every ledger and never shown; people see the ledger's label for it.
 */

import type { Schema } from "./schema";

export type Ledger = Schema<"World">;
export type Entry = Schema<"WriteEntry">;
export type Visibility = Schema<"Visibility">;

/** The operator's id in the API. */
export const OPERATOR_ID = "GEORGE";

/** Whose view a screen shows. */
export type Eyes =
	| { readonly kind: "operator" }
	| { readonly kind: "person"; readonly person: string }
	/** Every entry, whoever it was addressed to. Reads only. */
	| { readonly kind: "audit" };

/** The eyes of a URL: `?as=PERSON`, `?audit=1`, or neither. */
export function readEyes(as: string | null, audit: string | null): Eyes {
	if (audit === "1") return { kind: "audit" };
	return as === null || as === "" ? { kind: "operator" } : { kind: "person", person: as };
}

/** The parameters of a URL that restores these eyes. The API takes the same ones. */
export function eyesQuery(eyes: Eyes): { readonly as?: string; readonly audit?: string } {
	switch (eyes.kind) {
		case "operator":
			return {};
		case "person":
			return { as: eyes.person };
		case "audit":
			return { audit: "1" };
	}
}

/** Names the eyes in a cache key. */
export function eyesKey(eyes: Eyes): string {
	return eyes.kind === "person" ? `person ${eyes.person}` : eyes.kind;
}

/** Who reads: the id that the API uses for the view. */
export function viewerOf(eyes: Eyes): string {
	return eyes.kind === "person" ? eyes.person : OPERATOR_ID;
}

/** What people see of an author or reader. */
export function labelOf(ledger: Pick<Ledger, "operator_label" | "persons"> | undefined, id: string): string {
	if (id === OPERATOR_ID) return ledger?.operator_label ?? "Operator";
	const person = ledger?.persons.find((each) => each.person_id === id);
	return person?.display_label ?? id;
}

/** Whether an id is a person's, and so has a page: not the operator, the narrator or the server. */
export function isPersonId(id: string): boolean {
	return id !== OPERATOR_ID && id !== "WORLD" && id !== "SYSTEM";
}

/** Who wrote an entry, in words. */
export function authorWords(ledger: Ledger | undefined, author: Schema<"Author">): string {
	switch (author.author_class) {
		case "WORLD":
			return "the ledger’s own voice";
		case "SYSTEM":
			return "Turnkeep";
		default:
			return labelOf(ledger, author.author_id);
	}
}

/** Who may see an entry: null for everyone, else everybody who may. */
export function audienceOf(visibility: Visibility | null | undefined, author: string | null): readonly string[] | null {
	if (visibility == null || visibility.scope === "PUBLIC") return null;
	const readers = visibility.visible_to ?? [];
	return author === null || readers.includes(author) ? readers : [author, ...readers];
}

/** "everyone", "only Planner", "only Planner and Coder". */
export function audienceWords(audience: readonly string[] | null, label: (id: string) => string): string {
	return audience === null ? "everyone" : `only ${joinNames(audience.map(label))}`;
}

/** "A", "A and B", "A, B and C". */
export function joinNames(names: readonly string[]): string {
	const last = names.at(-1) ?? "nobody";
	return names.length < 2 ? last : `${names.slice(0, -1).join(", ")} and ${last}`;
}

/** A time on a ledger's own clock. */
export interface LedgerTime {
	/** "2026-11-18", for the line between two days. */
	readonly day: string;
	/** "22:44:08". */
	readonly clock: string;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** A time in the ledger's zone; null if the text is no time. */
export function ledgerTime(time: string, timezone: string): LedgerTime | null {
	const ms = Date.parse(time);
	if (!Number.isFinite(ms)) return null;
	const parts = new Map(
		formatOf(timezone)
			.formatToParts(ms)
			.map(({ type, value }) => [type, value]),
	);
	const get = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? "";
	return {
		day: `${get("year")}-${get("month")}-${get("day")}`,
		clock: `${get("hour")}:${get("minute")}:${get("second")}`,
	};
}

function formatOf(timezone: string): Intl.DateTimeFormat {
	const known = formats.get(timezone);
	if (known !== undefined) return known;
	const made = makeFormat(timezone) ?? makeFormat("UTC") ?? new Intl.DateTimeFormat();
	formats.set(timezone, made);
	return made;
}

/** Null for a zone that this browser does not know. */
function makeFormat(timeZone: string): Intl.DateTimeFormat | null {
	try {
		return new Intl.DateTimeFormat("en-CA", {
			timeZone,
			year: "numeric",
			month: "2-digit",
			day: "2-digit",
			hour: "2-digit",
			minute: "2-digit",
			second: "2-digit",
			hourCycle: "h23",
		});
	} catch {
		return null;
	}
}

/** People that a reader knows: those who were added, and in an open ledger everyone whom the shown entries name. */
export function knownPeople(ledger: Ledger | undefined, named: Iterable<string> = []): readonly string[] {
	const added = (ledger?.persons ?? []).map((person) => person.person_id);
	const known = new Set([...added, ...(ledger?.registry === "OPEN" ? named : [])].filter(isPersonId));
	return [...known].toSorted((one, other) => one.localeCompare(other));
}

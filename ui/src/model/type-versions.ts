/**
 * The versions of a type beside each other, field by field.
 *
 * A field keeps its tag for ever, so a row is a tag. What a version says of it is compared with the version before it
 * among those that are shown: added, changed, gone, or the same.
 */

import type { Schema } from "./schema";

export type TypeVersion = Schema<"TypeVersion">;

export type FieldChange = "first" | "same" | "added" | "changed" | "gone" | "absent";

/** A field of one version in words. */
export interface FieldWords {
	readonly name: string;
	/** "string", "list of com.example.Call", "i64 as unix_ms". */
	readonly type: string;
	readonly isOptional: boolean;
	/** Members that this build has no words for, as JSON. */
	readonly more: string;
}

export interface FieldCell {
	readonly change: FieldChange;
	readonly field: FieldWords | null;
	/** Of a changed field: what it was before, such as "the type was u8". */
	readonly was: readonly string[];
}

export interface FieldRow {
	readonly tag: string;
	/** One for each version, in their order. */
	readonly cells: readonly FieldCell[];
}

/** The rows of the versions, oldest version first, by ascending tag. */
export function fieldRows(versions: readonly TypeVersion[]): FieldRow[] {
	const tags = new Set(versions.flatMap(({ fields }) => Object.keys(fields)));
	return [...tags].toSorted(byNumber).map((tag) => ({
		tag,
		cells: versions.map(({ fields }, at) => {
			const field = fields[tag];
			const before = versions[at - 1]?.fields[tag];
			const change = at === 0 ? (field === undefined ? "absent" : "first") : changeOf(before, field);
			return {
				change,
				field: field === undefined ? null : fieldWords(field),
				was: change === "changed" ? wasWords(fieldWords(before), fieldWords(field)) : [],
			};
		}),
	}));
}

/** How many fields a version adds, changes and removes: "2 added, 1 changed"; empty for the first one that is shown. */
export function changeSummary(rows: readonly FieldRow[], at: number): string {
	if (at === 0) return "";
	const changes = (["added", "changed", "gone"] as const).flatMap((change) => {
		const count = rows.filter(({ cells }) => cells[at]?.change === change).length;
		return count === 0 ? [] : [`${count} ${change}`];
	});
	return changes.length === 0 ? "no field differs" : changes.join(", ");
}

/** What a changed field was before. A member without words of its own differs only in its JSON. */
function wasWords(before: FieldWords, now: FieldWords): string[] {
	return [
		...(before.name === now.name ? [] : [`the name was ${before.name}`]),
		...(before.type === now.type ? [] : [`the type was ${before.type}`]),
		...(before.isOptional === now.isOptional ? [] : [before.isOptional ? "it was optional" : "it was required"]),
		...(before.more === now.more ? [] : [before.more === "" ? "it had nothing more" : `it had ${before.more}`]),
	];
}

function changeOf(before: unknown, now: unknown): FieldChange {
	if (now === undefined) return before === undefined ? "absent" : "gone";
	if (before === undefined) return "added";
	return canonical(before) === canonical(now) ? "same" : "changed";
}

/** JSON with sorted members: their order says nothing. */
function canonical(value: unknown): string {
	return JSON.stringify(value, (_, member: unknown) =>
		typeof member === "object" && member !== null && !Array.isArray(member)
			? Object.fromEntries(Object.entries(member).toSorted(([one], [other]) => (one < other ? -1 : 1)))
			: member,
	);
}

const SAID = ["name", "type", "ref", "items", "key_type", "value_type", "optional", "semantic", "enum"];

export function fieldWords(field: unknown): FieldWords {
	const members = membersOf(field);
	const more = Object.fromEntries(Object.entries(members).filter(([name]) => !SAID.includes(name)));
	return {
		name: typeof members.name === "string" ? members.name : "no name",
		type: shapeWords(field),
		isOptional: members.optional === true,
		more: Object.keys(more).length === 0 ? "" : JSON.stringify(more),
	};
}

/** The shape of a value: a word, or an object whose parts are shapes. */
function shapeWords(shape: unknown): string {
	if (typeof shape === "string") return shape;
	const { type, ref, items, key_type, value_type, semantic, enum: enumId } = membersOf(shape);
	const word = typeof type === "string" ? type : "any";
	const base =
		word === "array"
			? `list of ${shapeWords(items ?? "any")}`
			: word === "map"
				? `map of ${shapeWords(key_type ?? "any")} to ${shapeWords(value_type ?? "any")}`
				: word === "ref" && typeof ref === "string"
					? ref
					: word;
	const meant = typeof semantic === "string" ? ` as ${semantic}` : "";
	return `${base}${meant}${typeof enumId === "string" ? ` of ${enumId}` : ""}`;
}

export interface TypePiece {
	/** Where it begins in the text. */
	readonly at: number;
	readonly text: string;
	readonly isType: boolean;
}

/** The words of a type, such as "list of com.example.Call", split so that known types stand alone. */
export function typePieces(words: string, known: ReadonlySet<string>): TypePiece[] {
	const pieces: TypePiece[] = [];
	let at = 0;
	for (const text of words.split(/( )/)) {
		const last = pieces.at(-1);
		const isType = known.has(text);
		if (last === undefined || last.isType || isType) pieces.push({ at, text, isType });
		else pieces[pieces.length - 1] = { ...last, text: last.text + text };
		at += text.length;
	}
	return pieces;
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
	return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** Digits by their value, so that tag 10 comes after tag 9. */
function byNumber(one: string, other: string): number {
	return one.length - other.length || (one < other ? -1 : 1);
}

export interface EnumWords {
	readonly id: string;
	readonly labels: readonly (readonly [number: string, label: string])[];
}

/** The enums that the versions name, with their labels by ascending number. Labels belong to the enum, not to a version. */
export function enumWords(versions: readonly TypeVersion[]): EnumWords[] {
	const enums = new Map(versions.flatMap((version) => Object.entries(version.enums)));
	return [...enums]
		.map(([id, labels]) => ({
			id,
			labels: Object.entries(labels).toSorted(([one], [other]) => Number(one) - Number(other)),
		}))
		.toSorted((one, other) => (one.id < other.id ? -1 : 1));
}

/** "1, 2, 3"; of many the newest ones: "… 8, 9, 10". */
export function versionNumbers(versions: readonly number[]): string {
	const newest = versions.slice(-NUMBERS_MAX);
	return `${newest.length < versions.length ? "… " : ""}${newest.join(", ")}`;
}

const NUMBERS_MAX = 6;

/** The choice of versions with one of them switched on or off, as the URL keeps it; null where none is left. */
export function toggledVersions(shown: readonly number[], version: number): string | null {
	const chosen = shown.includes(version) ? shown.filter((each) => each !== version) : [...shown, version];
	return chosen.length === 0 ? null : chosen.toSorted((one, other) => one - other).join(",");
}

/** So many versions are shown unless others are chosen. */
const SHOWN_FIRST = 3;

/**
 * Which versions are shown, oldest first: those of the URL (`1,3`), else the newest ones, and always the one that a link
 * names.
 */
export function shownVersions(known: readonly number[], chosen: string | null, named: string | null): number[] {
	const wanted = (chosen ?? "").split(",").filter(Boolean).map(Number);
	const found = known.filter((version) => wanted.includes(version));
	if (found.length > 0) return found;
	const newest = known.slice(-SHOWN_FIRST);
	const link = known.find((version) => String(version) === named);
	if (link === undefined || newest.includes(link)) return newest;
	return [link, ...newest.slice(1)];
}

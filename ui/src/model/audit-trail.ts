/**
 * The part of a ledger's audit that a browser holds, and its rows, newest first.
 *
 * The server numbers the lines from 0, oldest first, and never changes one. So the held part is a range that grows at
 * both ends: new lines after it, and earlier ones on request.
 */

import { type AuditKind, type AuditLine, type AuditPiece, auditWords } from "./audit";
import { parseTime } from "./time";

export interface AuditTrail {
	/** The number of the first held line. */
	readonly first: number;
	readonly lines: readonly AuditLine[];
}

/** The number that the line after the held ones has. */
export function endOf({ first, lines }: AuditTrail): number {
	return first + lines.length;
}

/**
 * The number of the last page, from 0. `hasPage` tells whether a page has a line; page 0 is taken for granted.
 *
 * The server does not count its lines, so this doubles the distance until there is no page, and then halves the rest:
 * with the last page 9 it asks for the pages 1, 2, 4, 8, 16, then 12, 10, 9.
 */
export async function findLastPage(hasPage: (page: number) => Promise<boolean>): Promise<number> {
	let last = 0;
	let missing = 1;
	while (await hasPage(missing)) {
		last = missing;
		missing *= 2;
	}
	while (missing - last > 1) {
		const middle = Math.floor((last + missing) / 2);
		if (await hasPage(middle)) last = middle;
		else missing = middle;
	}
	return last;
}

export interface NumberedLine {
	readonly number: number;
	readonly line: AuditLine;
}

/** Lines that follow each other and say the same of the same principal. */
export interface AuditRow {
	readonly kind: AuditKind;
	readonly principal: string;
	readonly said: readonly AuditPiece[];
	/** At least one; newest first. */
	readonly lines: readonly [NumberedLine, ...NumberedLine[]];
}

/** One look at a page of a ledger is several requests, and each leaves a line. Lines this close together are one row. */
const REPEAT_GAP_MS = 60_000;

/** The rows of one kind, or of all kinds. */
export function auditRows({ first, lines }: AuditTrail, kind: AuditKind | null): AuditRow[] {
	const rows: (AuditRow & { readonly lines: NumberedLine[] })[] = [];
	for (let at = lines.length - 1; at >= 0; at -= 1) {
		const line = lines[at];
		if (line === undefined) continue;
		const words = auditWords(line);
		if (kind !== null && words.kind !== kind) continue;
		const numbered = { number: first + at, line };
		const row = rows.at(-1);
		if (row !== undefined && repeats(row, line, words.said)) row.lines.push(numbered);
		else rows.push({ ...words, principal: line.principal, lines: [numbered] });
	}
	return rows;
}

function repeats(row: AuditRow, line: AuditLine, said: readonly AuditPiece[]): boolean {
	const [later, earlier] = [parseTime(row.lines.at(-1)?.line.at ?? ""), parseTime(line.at ?? "")];
	if (later === null || earlier === null || later - earlier > REPEAT_GAP_MS) return false;
	return row.principal === line.principal && JSON.stringify(row.said) === JSON.stringify(said);
}

/** How many lines there are of each kind. */
export function countAuditKinds(lines: readonly AuditLine[]): ReadonlyMap<AuditKind, number> {
	const counts = new Map<AuditKind, number>();
	for (const line of lines) {
		const { kind } = auditWords(line);
		counts.set(kind, (counts.get(kind) ?? 0) + 1);
	}
	return counts;
}

/** The stream of a ledger as a screen holds it: entries so far, where to go on, and whether there are earlier ones. */

import type { Entry, Visibility } from "./ledger";
import type { Schema } from "./schema";

/** An entry in the stream. */
export interface StreamLine {
	readonly id: string;
	readonly at: string;
	readonly channel: string;
	/** As it was when the entry was written; null for what the operator and the ledger's own voice say. */
	readonly label: string | null;
	readonly text: string;
	readonly visibility: Visibility | null;
	/** Known in an audit only. */
	readonly author: string | null;
}

export interface LedgerStream {
	readonly lines: readonly StreamLine[];
	/** Where the next page begins; null at the very beginning. */
	readonly cursor: string | null;
	/** Null in an audit. */
	readonly pocket: Schema<"Pocket"> | null;
	/** There are entries before this time that are not held; null if there are none. */
	readonly earlierThan: string | null;
	/** Whether it ends before the ledger does, because there is too much to read at once. */
	readonly isCut: boolean;
}

export interface StreamPage {
	readonly lines: readonly StreamLine[];
	readonly cursor: string | null;
	readonly pocket: Schema<"Pocket"> | null;
}

/** A page of either kind of stream. `label` names authors where the page has only ids. */
export function readPage(answer: Schema<"StreamAnswer">, label: (id: string) => string): StreamPage {
	const { stream } = answer;
	const pocket = "pocket" in answer ? answer.pocket : null;
	const lines = stream.entries.map((entry) => ("author" in entry ? auditLine(entry, label) : viewLine(entry)));
	return { lines, cursor: stream.cursor_after ?? null, pocket };
}

function viewLine(entry: Schema<"StreamEntry">): StreamLine {
	return {
		id: entry.entry_id,
		at: entry.created_at_world,
		channel: entry.channel,
		label: entry.author_label ?? null,
		text: entry.text,
		visibility: entry.visibility ?? null,
		author: null,
	};
}

export function auditLine(entry: Entry, label: (id: string) => string): StreamLine {
	const { author_id: author } = entry.author;
	return {
		id: entry.entry_id ?? "",
		at: entry.created_at_world ?? "",
		channel: entry.channel,
		label: entry.channel === "PEOPLE" ? label(author) : null,
		text: entry.text,
		visibility: entry.visibility,
		author,
	};
}

/** Puts a page behind what is held. */
export function appendPage(stream: LedgerStream, page: StreamPage): LedgerStream {
	const known = new Set(stream.lines.slice(-page.lines.length).map(({ id }) => id));
	const fresh = page.lines.filter(({ id }) => !known.has(id));
	return {
		...stream,
		lines: fresh.length === 0 ? stream.lines : [...stream.lines, ...fresh],
		cursor: page.cursor ?? stream.cursor,
		pocket: page.pocket ?? stream.pocket,
	};
}

/** Puts earlier entries before what is held. */
export function prependLines(
	stream: LedgerStream,
	lines: readonly StreamLine[],
	earlierThan: string | null,
): LedgerStream {
	const known = new Set(stream.lines.map(({ id }) => id));
	return { ...stream, lines: [...lines.filter(({ id }) => !known.has(id)), ...stream.lines], earlierThan };
}

/** A millisecond before a time, so that entries of the very time are not left out. */
export function justBefore(time: string): string {
	return new Date(Date.parse(time) - 1).toISOString();
}

/**
 * Ranges of an entry's text. The API counts bytes of UTF-8, the browser UTF-16 units, and every excerpt, capsule line
 * and pocket field leads to its place in the entry.
 */

/** A part of a text, from `start` to before `end`. */
export interface TextRange {
	readonly start: number;
	readonly end: number;
}

/** A part of a text that is shown: marked or not. */
export interface TextPiece {
	readonly at: number;
	readonly text: string;
	readonly isMarked: boolean;
}

/** Where a byte of the text's UTF-8 form is in the string; the end if the text is shorter. */
export function indexOfByte(text: string, byte: number): number {
	let bytes = 0;
	for (let at = 0; at < text.length; ) {
		if (bytes >= byte) return at;
		const codePoint = text.codePointAt(at) ?? 0;
		bytes += codePoint < 0x80 ? 1 : codePoint < 0x800 ? 2 : codePoint < 0x10000 ? 3 : 4;
		at += codePoint > 0xffff ? 2 : 1;
	}
	return text.length;
}

/** A range of bytes as a range of the string; null if it is empty or none. */
export function rangeOfBytes(text: string, from: string | null, to: string | null): TextRange | null {
	if (from === null || to === null || !/^\d{1,9}$/.test(from) || !/^\d{1,9}$/.test(to)) return null;
	const range = { start: indexOfByte(text, Number(from)), end: indexOfByte(text, Number(to)) };
	return range.start < range.end ? range : null;
}

/** So many places of one quote are marked at most. */
const PLACES_MAX = 100;

/** Every place where a quote stands in a text. */
export function rangesOfQuote(text: string, quote: string | null): TextRange[] {
	const ranges: TextRange[] = [];
	if (quote === null || quote === "") return ranges;
	for (let at = text.indexOf(quote); at >= 0 && ranges.length < PLACES_MAX; at = text.indexOf(quote, at + quote.length))
		ranges.push({ start: at, end: at + quote.length });
	return ranges;
}

/** The words of a query: quoted parts as they are, the rest word by word. */
export function queryWords(query: string): string[] {
	const words: string[] = [];
	for (const match of query.matchAll(/"([^"]+)"|([\p{L}\p{N}_]+)/gu)) {
		const word = match[1] ?? match[2] ?? "";
		if (word !== "") words.push(word);
	}
	return words;
}

/** Where words of a query stand in a text, as whole words and ignoring case; none overlaps another. */
export function rangesOfWords(text: string, words: readonly string[]): TextRange[] {
	if (words.length === 0) return [];
	const wanted = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
	const ranges: TextRange[] = [];
	for (const match of text.matchAll(new RegExp(`(?<![\\p{L}\\p{N}_])(?:${wanted})(?![\\p{L}\\p{N}_])`, "giu"))) {
		ranges.push({ start: match.index, end: match.index + match[0].length });
		if (ranges.length >= PLACES_MAX) break;
	}
	return ranges;
}

/** Takes a text apart at ranges, which are in order and do not overlap. */
export function piecesOf(text: string, ranges: readonly TextRange[]): TextPiece[] {
	const pieces: TextPiece[] = [];
	let end = 0;
	for (const range of ranges) {
		if (range.start > end) pieces.push({ at: end, text: text.slice(end, range.start), isMarked: false });
		pieces.push({ at: range.start, text: text.slice(range.start, range.end), isMarked: true });
		end = range.end;
	}
	if (end < text.length) pieces.push({ at: end, text: text.slice(end), isMarked: false });
	return pieces;
}

/** The part of a long text that is shown at first: so many characters, with the given place inside. */
export function windowAround(text: string, place: number, charsMax: number): TextRange {
	if (text.length <= charsMax) return { start: 0, end: text.length };
	const start = Math.max(0, Math.min(place - Math.floor(charsMax / 4), text.length - charsMax));
	return { start: onBoundary(text, start), end: onBoundary(text, start + charsMax) };
}

/** Not between the two units of one character. */
function onBoundary(text: string, at: number): number {
	const unit = text.charCodeAt(at);
	return unit >= 0xdc00 && unit <= 0xdfff ? at - 1 : at;
}

/** How many bytes a text has on disk. */
export function byteLength(text: string): number {
	return new TextEncoder().encode(text).length;
}

/** How much of a text is shown where many stand together: so many characters, and so many lines. */
export function headLength(text: string, charsMax: number, linesMax: number): number {
	let end = -1;
	for (let lines = 0; lines < linesMax; lines += 1) {
		end = text.indexOf("\n", end + 1);
		if (end < 0 || end > charsMax) return charsMax;
	}
	return end;
}

/** The excerpts of a text that joins them by line feeds; each as long as its range says, in bytes. */
export function splitExcerpts(
	text: string,
	ranges: readonly { readonly start: number; readonly end: number }[],
): string[] {
	const excerpts: string[] = [];
	let rest = text;
	for (const { start, end } of ranges) {
		const length = indexOfByte(rest, end - start);
		excerpts.push(rest.slice(0, length));
		rest = rest.slice(length + 1);
	}
	return excerpts;
}

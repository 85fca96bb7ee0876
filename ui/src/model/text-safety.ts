/**
 * Untrusted text made safe to look at: what would change the order of characters, hide, or drive a terminal is shown
 * as a mark with its name instead of being obeyed.
 *
 * Example: `"a\u202Eb\u001b[31mc"` becomes text "a", mark "RLO", text "b", escape "ESC[31m", text "c".
 */

/** A piece of text as it is shown. A mark stands for one character that would not be visible. */
export type SafePiece =
	| { readonly kind: "text"; readonly text: string }
	| { readonly kind: "mark"; readonly name: string; readonly codePoint: number }
	| { readonly kind: "escape"; readonly text: string };

/** What happens to terminal escapes: `show` as marks, or `strip`. */
export type EscapeMode = "show" | "strip";

/**
 * CSI, OSC, DCS/SOS/PM/APC strings and two-character escapes. The lengths are bounded, so a lone ESC eats little.
 * Built from text because the characters that it looks for must not stand in a pattern.
 */
const ESC = "\\u001b";
const CSI_BODY = "[0-?]{0,256}[ -/]{0,16}[@-~]";
const ESCAPE = new RegExp(
	[
		`${ESC}\\[${CSI_BODY}`,
		`${ESC}\\][^\\u0007${ESC}]{0,4096}(?:\\u0007|${ESC}\\\\)`,
		`${ESC}[PX^_][^${ESC}]{0,4096}${ESC}\\\\`,
		`${ESC}[ -/]{0,4}[0-OQ-WYZ\\\\\`-~]`,
		`\\u009b${CSI_BODY}`,
	].join("|"),
	"g",
);

/** Characters with a name of their own. */
const NAMES: Readonly<Record<number, string>> = {
	0: "NUL",
	7: "BEL",
	8: "BS",
	11: "VT",
	12: "FF",
	13: "CR",
	27: "ESC",
	127: "DEL",
	173: "SHY",
	847: "CGJ",
	1564: "ALM",
	6158: "MVS",
	8203: "ZWSP",
	8204: "ZWNJ",
	8205: "ZWJ",
	8206: "LRM",
	8207: "RLM",
	8232: "LSEP",
	8233: "PSEP",
	8234: "LRE",
	8235: "RLE",
	8236: "PDF",
	8237: "LRO",
	8238: "RLO",
	8288: "WJ",
	8294: "LRI",
	8295: "RLI",
	8296: "FSI",
	8297: "PDI",
	65279: "BOM",
};

const EMOJI_BEFORE = /(?:\p{Extended_Pictographic}|\ufe0f|\p{Emoji_Modifier})$/u;
const EMOJI_AFTER = /^\p{Extended_Pictographic}/u;

/**
 * Ranges of characters that cannot be seen, besides Unicode's format, private and surrogate characters: controls but tab
 * and line feed, fillers that look like spaces, selectors, and tag characters, which can carry whole hidden messages.
 */
const INVISIBLE_RANGES: readonly (readonly [number, number])[] = [
	[0x00, 0x08],
	[0x0b, 0x1f],
	[0x7f, 0x9f],
	[0x34f, 0x34f],
	[0x115f, 0x1160],
	[0x17b4, 0x17b5],
	[0x180b, 0x180f],
	[0x2028, 0x2029],
	[0x2800, 0x2800],
	[0x3164, 0x3164],
	[0xfe00, 0xfe0f],
	[0xffa0, 0xffa0],
	[0xfff0, 0xfffb],
	[0xe0000, 0xe0fff],
];

const inPattern = (codePoint: number) => `\\u{${codePoint.toString(16)}}`;
const INVISIBLE = new RegExp(
	`[\\p{Cf}\\p{Co}\\p{Cs}${INVISIBLE_RANGES.map(([first, last]) => `${inPattern(first)}-${inPattern(last)}`).join("")}]`,
	"gu",
);

/** A fast test for the text that needs nothing, which is nearly all of it. */
const PLAIN =
	/^[\t\n\x20-\x7e\u00a0-\u00ac\u00ae-\u024f\u0391-\u03c9\u0410-\u044f\u2010-\u2027\u20a0-\u20bf\u2190-\u21ff\u2500-\u257f]*$/;

/** Takes a text apart into what is shown as it is and what is shown as a mark. `\r\n` counts as a line feed. */
export function safePieces(text: string, mode: EscapeMode = "show"): SafePiece[] {
	const unified = text.replaceAll("\r\n", "\n");
	if (PLAIN.test(unified)) return unified === "" ? [] : [{ kind: "text", text: unified }];
	const pieces: SafePiece[] = [];
	let end = 0;
	for (const match of unified.matchAll(ESCAPE)) {
		pushVisible(pieces, unified.slice(end, match.index));
		if (mode === "show") pieces.push({ kind: "escape", text: escapeName(match[0]) });
		end = match.index + match[0].length;
	}
	pushVisible(pieces, unified.slice(end));
	return pieces;
}

function pushVisible(pieces: SafePiece[], text: string): void {
	let end = 0;
	for (const match of text.matchAll(INVISIBLE)) {
		const codePoint = match[0].codePointAt(0) ?? 0;
		const before = text.slice(Math.max(0, match.index - 2), match.index);
		const after = text.slice(match.index + match[0].length, match.index + match[0].length + 2);
		if (isOrdinary(codePoint, before, after)) continue;
		if (match.index > end) pieces.push({ kind: "text", text: text.slice(end, match.index) });
		pieces.push({ kind: "mark", name: markName(codePoint), codePoint });
		end = match.index + match[0].length;
	}
	if (end < text.length) pieces.push({ kind: "text", text: text.slice(end) });
}

/** Joiners and presentation selectors are ordinary inside an emoji; anywhere else they hide something. */
function isOrdinary(codePoint: number, before: string, after: string): boolean {
	if (codePoint === 0x200d) return EMOJI_BEFORE.test(before) && EMOJI_AFTER.test(after);
	return (codePoint === 0xfe0f || codePoint === 0xfe0e) && (EMOJI_BEFORE.test(before) || /[\d#*©®‼⁉™]$/.test(before));
}

function markName(codePoint: number): string {
	const hex = codePoint.toString(16).toUpperCase().padStart(4, "0");
	return NAMES[codePoint] ?? `U+${hex}`;
}

function escapeName(text: string): string {
	const visible = [...text].map((each) => {
		const codePoint = each.codePointAt(0) ?? 0;
		return codePoint < 32 || (codePoint >= 127 && codePoint < 160) ? markName(codePoint) : each;
	});
	const joined = visible.join("");
	return joined.length > 24 ? `${joined.slice(0, 23)}…` : joined;
}

/** One string with the marks spelled out, for titles, attributes and `aria-label`s: `a⟨RLO⟩b`. */
export function safeText(text: string, mode: EscapeMode = "strip"): string {
	return safePieces(text, mode).map(spellPiece).join("");
}

function spellPiece(piece: SafePiece): string {
	switch (piece.kind) {
		case "text":
			return piece.text;
		case "mark":
			return `⟨${piece.name}⟩`;
		case "escape":
			return `⟨${piece.text}⟩`;
	}
}

/** Whether anything in the text would be shown as a mark. */
export function hasHiddenCharacters(text: string): boolean {
	return safePieces(text).some((piece) => piece.kind !== "text");
}

/** The first line of a text, cut at a number of characters; for chips, titles and one-line previews. */
export function firstLine(text: string, charsMax = 120): string {
	const line = safeText(text).trimStart().split("\n", 1)[0] ?? "";
	const characters = [...line.trimEnd()];
	return characters.length > charsMax ? `${characters.slice(0, charsMax - 1).join("")}…` : characters.join("");
}

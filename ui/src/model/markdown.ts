/**
 * Markdown as people and models write it, read into a tree. No HTML and no images: both stay text, so nothing in a
 * message can reach beyond its own words. What is not understood stays as it was written.
 *
 * Blocks: headings, paragraphs, lists, quotes, code, rules, tables. Words: code, strong, emphasis, struck, links.
 */

export type Block =
	| { readonly kind: "heading"; readonly level: number; readonly words: readonly Inline[] }
	| { readonly kind: "paragraph"; readonly words: readonly Inline[] }
	| { readonly kind: "code"; readonly language: string; readonly text: string }
	| { readonly kind: "quote"; readonly blocks: readonly Block[] }
	| { readonly kind: "list"; readonly start: number | null; readonly items: readonly ListItem[] }
	| { readonly kind: "table"; readonly head: readonly Cell[]; readonly rows: readonly (readonly Cell[])[] }
	| { readonly kind: "rule" };

export type Cell = readonly Inline[];

export interface ListItem {
	/** Whether a task is done; null for an item that is no task. */
	readonly isDone: boolean | null;
	readonly blocks: readonly Block[];
}

export type Inline =
	| { readonly kind: "text"; readonly text: string }
	| { readonly kind: "code"; readonly text: string }
	| { readonly kind: "strong" | "emphasis" | "struck"; readonly words: readonly Inline[] }
	| { readonly kind: "link"; readonly href: string; readonly words: readonly Inline[] }
	/** An image that was not loaded, as its description and address. */
	| { readonly kind: "image"; readonly alt: string; readonly src: string };

/** Deeper nesting stays text: no person writes it, and each level costs stack. */
const DEPTH_MAX = 12;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const TASK = /^\[([ xX])\]\s+/;

export function parseMarkdown(text: string): Block[] {
	return parseBlocks(text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n"), 0);
}

function parseBlocks(lines: readonly string[], depth: number): Block[] {
	const blocks: Block[] = [];
	let at = 0;
	while (at < lines.length) {
		const read = readBlock(lines, at, depth);
		if (read.block !== null) blocks.push(read.block);
		at = read.next;
	}
	return blocks;
}

interface Read {
	readonly block: Block | null;
	/** The first line behind the block. */
	readonly next: number;
}

function readBlock(lines: readonly string[], at: number, depth: number): Read {
	const line = lines[at] ?? "";
	if (line.trim() === "") return { block: null, next: at + 1 };
	const fence = FENCE.exec(line);
	if (fence !== null) return readCode(lines, at, fence);
	const heading = HEADING.exec(line);
	if (heading !== null) {
		const [, marks = "#", words = ""] = heading;
		return { block: { kind: "heading", level: marks.length, words: parseInline(words) }, next: at + 1 };
	}
	if (RULE.test(line)) return { block: { kind: "rule" }, next: at + 1 };
	if (depth < DEPTH_MAX && QUOTE.test(line)) return readQuote(lines, at, depth);
	if (depth < DEPTH_MAX && ITEM.test(line)) return readList(lines, at, depth);
	if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
		return readTable(lines, at);
	}
	return readParagraph(lines, at, depth);
}

function readCode(lines: readonly string[], at: number, fence: RegExpExecArray): Read {
	const [, marks = "", language = ""] = fence;
	const isEnd = (line: string) => {
		const trimmed = line.trim();
		return trimmed.startsWith(marks) && trimmed === marks.charAt(0).repeat(trimmed.length);
	};
	let end = at + 1;
	while (end < lines.length && !isEnd(lines[end] ?? "")) end += 1;
	const text = lines.slice(at + 1, end).join("\n");
	// A fence that does not end yet is code as far as it came: the text may still be streaming.
	return { block: { kind: "code", language: language.trim(), text }, next: end + 1 };
}

function readQuote(lines: readonly string[], at: number, depth: number): Read {
	let end = at;
	while (end < lines.length && QUOTE.test(lines[end] ?? "")) end += 1;
	const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
	return { block: { kind: "quote", blocks: parseBlocks(inside, depth + 1) }, next: end };
}

function readList(lines: readonly string[], at: number, depth: number): Read {
	const first = ITEM.exec(lines[at] ?? "");
	const marker = first?.[2] ?? "-";
	const isOrdered = /\d/.test(marker);
	const items: ListItem[] = [];
	let next = at;
	while (next < lines.length) {
		const start = ITEM.exec(lines[next] ?? "");
		if (start === null || /\d/.test(start[2] ?? "") !== isOrdered) break;
		const item = readItem(lines, next, start, depth);
		items.push(item.item);
		next = item.next;
	}
	return { block: { kind: "list", start: isOrdered ? Number.parseInt(marker, 10) : null, items }, next };
}

function readItem(lines: readonly string[], at: number, start: RegExpExecArray, depth: number) {
	// Text behind the marker may be indented by more than one space; code inside keeps what is beyond it.
	const width = Math.min(start[0].length, (start[1]?.length ?? 0) + (start[2]?.length ?? 0) + 4);
	const inside = [(lines[at] ?? "").slice(start[0].length)];
	let next = at + 1;
	for (; next < lines.length; next += 1) {
		const line = lines[next] ?? "";
		const isIndented = line.startsWith(" ".repeat(Math.min(width, 2))) && line.trim() !== "";
		const isBlankInside = line.trim() === "" && /^\s{2,}\S/.test(lines[next + 1] ?? "");
		const isContinued = line.trim() !== "" && inside.at(-1) !== "" && !startsBlock(line);
		if (!isIndented && !isBlankInside && !isContinued) break;
		inside.push(line.slice(Math.min(width, line.length - line.trimStart().length)));
	}
	const task = TASK.exec(inside[0] ?? "");
	if (task !== null) inside[0] = (inside[0] ?? "").slice(task[0].length);
	const isDone = task === null ? null : task[1] !== " ";
	// Blank lines between items belong to none of them.
	while (next < lines.length && (lines[next] ?? "").trim() === "" && ITEM.test(lines[next + 1] ?? "")) next += 1;
	return { item: { isDone, blocks: parseBlocks(inside, depth + 1) }, next };
}

function readTable(lines: readonly string[], at: number): Read {
	const head = cellsOf(lines[at] ?? "");
	const rows: Cell[][] = [];
	let next = at + 2;
	for (; next < lines.length && (lines[next] ?? "").includes("|"); next += 1) rows.push(cellsOf(lines[next] ?? ""));
	return { block: { kind: "table", head, rows }, next };
}

function cellsOf(line: string): Cell[] {
	const inside = line.trim().replace(/^\|/, "").replace(/\|$/, "");
	return inside.split(/(?<!\\)\|/).map((cell) => parseInline(cell.trim().replaceAll("\\|", "|")));
}

function readParagraph(lines: readonly string[], at: number, depth: number): Read {
	let end = at + 1;
	while (end < lines.length && (lines[end] ?? "").trim() !== "" && !startsBlock(lines[end] ?? "")) end += 1;
	const text = lines
		.slice(at, end)
		.map((line) => (depth === 0 ? line.trimEnd() : line.trim()))
		.join("\n");
	return { block: { kind: "paragraph", words: parseInline(text.trim()) }, next: end };
}

function startsBlock(line: string): boolean {
	return [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line));
}

/** The words inside a line. The first mark that fits wins; a mark without its end stays text. */
const INLINE = new RegExp(
	[
		"(?<escaped>\\\\[!-/:-@[-`{-~])",
		"(?<ticks>`+)(?<code>[^`](?:.*?[^`])?)\\k<ticks>(?!`)",
		"!\\[(?<alt>[^\\]]*)\\]\\((?<src>[^()\\s]*)[^)]*\\)",
		"\\[(?<label>(?:[^[\\]]|\\[[^\\]]*\\])*)\\]\\((?<href>[^()\\s]*(?:\\([^()\\s]*\\))?)[^)]*\\)",
		"<(?<auto>https?://[^\\s<>]+)>",
		"(?<bare>https?://[^\\s<>()`*]*[^\\s<>()`*.,;:!?'\"\\]])",
		"\\*\\*(?<strong>\\S(?:.*?\\S)?)\\*\\*",
		"(?<!\\w)__(?<strong2>\\S(?:.*?\\S)?)__(?!\\w)",
		"\\*(?<emphasis>[^\\s*](?:[^*]*[^\\s*])?)\\*",
		"(?<!\\w)_(?<emphasis2>[^\\s_](?:[^_]*[^\\s_])?)_(?!\\w)",
		"~~(?<struck>\\S(?:.*?\\S)?)~~",
	].join("|"),
	"gsu",
);

export function parseInline(text: string, depth = 0): Inline[] {
	if (depth > DEPTH_MAX) return [{ kind: "text", text }];
	const words: Inline[] = [];
	let end = 0;
	for (const match of text.matchAll(INLINE)) {
		if (match.index > end) words.push({ kind: "text", text: text.slice(end, match.index) });
		words.push(inlineOf(match[0], match.groups ?? {}, depth));
		end = match.index + match[0].length;
	}
	if (end < text.length) words.push({ kind: "text", text: text.slice(end) });
	return joinTexts(words);
}

function inlineOf(whole: string, groups: Readonly<Record<string, string | undefined>>, depth: number): Inline {
	const inside = (text: string) => parseInline(text, depth + 1);
	const { escaped, code, alt, src, label, href, auto, bare, strong, strong2, emphasis, emphasis2, struck } = groups;
	if (escaped !== undefined) return { kind: "text", text: escaped.slice(1) };
	if (code !== undefined) return { kind: "code", text: code.replace(/^ (.*\S.*) $/s, "$1") };
	if (src !== undefined) return { kind: "image", alt: alt ?? "", src };
	if (href !== undefined) {
		return isSafeLink(href) ? { kind: "link", href, words: inside(label ?? "") } : { kind: "text", text: whole };
	}
	const address = auto ?? bare;
	if (address !== undefined) return { kind: "link", href: address, words: [{ kind: "text", text: address }] };
	if ((strong ?? strong2) !== undefined) return { kind: "strong", words: inside(strong ?? strong2 ?? "") };
	if ((emphasis ?? emphasis2) !== undefined) return { kind: "emphasis", words: inside(emphasis ?? emphasis2 ?? "") };
	return { kind: "struck", words: inside(struck ?? "") };
}

/** Links lead to web pages and mail only; a script or a file of this machine is text. */
export function isSafeLink(href: string): boolean {
	return /^(https?:\/\/|mailto:)/i.test(href);
}

function joinTexts(words: readonly Inline[]): Inline[] {
	const joined: Inline[] = [];
	for (const word of words) {
		const last = joined.at(-1);
		if (word.kind === "text" && last?.kind === "text")
			joined[joined.length - 1] = { kind: "text", text: last.text + word.text };
		else joined.push(word);
	}
	return joined;
}

/** The lines that differ between two texts, as a file of a diff. */

import type { DiffFile, DiffHunk, DiffLine } from "./diff";

/** Unchanged lines around a change. */
const CONTEXT_LINES = 3;
/** The table of a comparison has a cell for each pair of lines. Larger parts count as replaced as a whole. */
const CELLS_MAX = 250_000;

/** How two texts differ; null if they do not. `name` stands in the header. */
export function diffTexts(name: string, before: string, after: string): DiffFile | null {
	if (before === after) return null;
	const lines = numbered(compareLines(before.split("\n"), after.split("\n")));
	const count = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
	return {
		path: name,
		oldPath: null,
		change: "modified",
		isBinary: false,
		oldMode: null,
		newMode: null,
		hunks: hunksOf(lines),
		added: count("added"),
		removed: count("removed"),
	};
}

type Edit = Pick<DiffLine, "kind" | "text">;

/** Lines that both texts have at their beginning and end are set aside first: mostly little is left to compare. */
function compareLines(before: readonly string[], after: readonly string[]): Edit[] {
	const shorter = Math.min(before.length, after.length);
	let start = 0;
	while (start < shorter && before[start] === after[start]) start += 1;
	let end = 0;
	while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
	return [
		...before.slice(0, start).map(edit("context")),
		...compareMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
		...before.slice(before.length - end).map(edit("context")),
	];
}

function edit(kind: Edit["kind"]): (text: string) => Edit {
	return (text) => ({ kind, text });
}

/**
 * Keeps the longest sequence of lines that both have, in their order.
 *
 * `common[i][j]` is its length for the lines from `i` and from `j` on. Walking from the beginning, a pair of equal lines
 * is kept; otherwise the line goes whose absence leaves more in common.
 */
function compareMiddle(before: readonly string[], after: readonly string[]): Edit[] {
	if (before.length * after.length > CELLS_MAX) return [...before.map(edit("removed")), ...after.map(edit("added"))];
	const common = commonLengths(before, after);
	const edits: Edit[] = [];
	let [i, j] = [0, 0];
	while (i < before.length && j < after.length) {
		const text = before[i] ?? "";
		if (text === after[j]) {
			edits.push({ kind: "context", text });
			i += 1;
			j += 1;
		} else if ((common[i + 1]?.[j] ?? 0) >= (common[i]?.[j + 1] ?? 0)) {
			edits.push({ kind: "removed", text });
			i += 1;
		} else {
			edits.push({ kind: "added", text: after[j] ?? "" });
			j += 1;
		}
	}
	return [...edits, ...before.slice(i).map(edit("removed")), ...after.slice(j).map(edit("added"))];
}

function commonLengths(before: readonly string[], after: readonly string[]): number[][] {
	const common = Array.from({ length: before.length + 1 }, () => new Array<number>(after.length + 1).fill(0));
	for (let i = before.length - 1; i >= 0; i -= 1) {
		const [row, below] = [common[i] ?? [], common[i + 1] ?? []];
		for (let j = after.length - 1; j >= 0; j -= 1) {
			row[j] = before[i] === after[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
		}
	}
	return common;
}

function numbered(edits: readonly Edit[]): DiffLine[] {
	let [oldLine, newLine] = [0, 0];
	return edits.map(({ kind, text }) => {
		if (kind !== "added") oldLine += 1;
		if (kind !== "removed") newLine += 1;
		return {
			kind,
			text,
			oldLine: kind === "added" ? null : oldLine,
			newLine: kind === "removed" ? null : newLine,
		};
	});
}

/** Leaves out what is far from any change. */
function hunksOf(lines: readonly DiffLine[]): DiffHunk[] {
	const near = new Set<number>();
	lines.forEach((line, at) => {
		if (line.kind === "context") return;
		for (let around = at - CONTEXT_LINES; around <= at + CONTEXT_LINES; around += 1) near.add(around);
	});
	const groups: DiffLine[][] = [];
	lines.forEach((line, at) => {
		if (!near.has(at)) return;
		if (near.has(at - 1) && at > 0) groups.at(-1)?.push(line);
		else groups.push([line]);
	});
	return groups.map((group) => ({
		heading: "",
		oldStart: group.find((line) => line.oldLine !== null)?.oldLine ?? 0,
		newStart: group.find((line) => line.newLine !== null)?.newLine ?? 0,
		lines: group,
	}));
}

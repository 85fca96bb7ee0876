/** A diff as the rows of one long list, so that only the visible part of it must be in the document. */

import type { DiffFile, DiffHunk, DiffLine } from "./diff";

export type DiffRow =
	| { readonly kind: "file"; readonly key: string; readonly file: DiffFile; readonly isFolded: boolean }
	| { readonly kind: "hunk"; readonly key: string; readonly hunk: DiffHunk }
	| { readonly kind: "line"; readonly key: string; readonly line: DiffLine; readonly file: DiffFile }
	/** A file without lines, and why. */
	| { readonly kind: "note"; readonly key: string; readonly text: string };

/** The rows of the files. A folded file is only its header. */
export function diffRows(files: readonly DiffFile[], folded: ReadonlySet<string>): DiffRow[] {
	return files.flatMap((file, number): DiffRow[] => {
		const isFolded = folded.has(file.path);
		const head: DiffRow = { kind: "file", key: `${number}`, file, isFolded };
		return isFolded ? [head] : [head, ...rowsOf(file, `${number}`)];
	});
}

function rowsOf(file: DiffFile, key: string): DiffRow[] {
	if (file.hunks.length === 0) return [{ kind: "note", key: `${key} note`, text: emptyReason(file) }];
	return file.hunks.flatMap((hunk, at): DiffRow[] => [
		{ kind: "hunk", key: `${key} ${at}`, hunk },
		...hunk.lines.map((line, number): DiffRow => ({ kind: "line", key: `${key} ${at} ${number}`, line, file })),
	]);
}

function emptyReason(file: DiffFile): string {
	if (file.isBinary) return "A binary file: its content is not shown.";
	switch (file.change) {
		case "renamed":
			return "Renamed without other changes.";
		case "copied":
			return "Copied without other changes.";
		case "mode":
			return `Only the mode changed, from ${file.oldMode} to ${file.newMode}.`;
		case "added":
			return "An empty file was added.";
		case "deleted":
			return "An empty file was deleted.";
		case "modified":
			return "No lines changed.";
	}
}

/** A file, or a line of it. */
export interface DiffPlace {
	readonly path: string;
	/** Its number in the new file; null for the file as a whole. */
	readonly line: number | null;
}

/** The row of a line, or of the file's header if the line is not shown; null if the file is not there. */
export function rowOfPlace(rows: readonly DiffRow[], { path, line }: DiffPlace): number | null {
	const isLine = (row: DiffRow) => row.kind === "line" && row.file.path === path && row.line.newLine === line;
	const lineAt = line === null ? -1 : rows.findIndex(isLine);
	const at = lineAt >= 0 ? lineAt : rows.findIndex((row) => row.kind === "file" && row.file.path === path);
	return at < 0 ? null : at;
}

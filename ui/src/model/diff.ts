/**
 * Reads the diffs that git prints.
 *
 * A diff is files; a file has hunks; a hunk has lines with their numbers on both sides. What is not understood is kept
 * as a line of kind `note`, so no byte of a diff disappears from the screen.
 */

/** What happened to a file. */
export type FileChange = "added" | "deleted" | "modified" | "renamed" | "copied" | "mode";

/** A line of a hunk. `oldLine` and `newLine` are counted from 1; a line that a side does not have has null there. */
export interface DiffLine {
	readonly kind: "context" | "added" | "removed" | "note";
	readonly text: string;
	readonly oldLine: number | null;
	readonly newLine: number | null;
}

export interface DiffHunk {
	/** The text behind the second `@@`: the function around, as git sees it. */
	readonly heading: string;
	readonly oldStart: number;
	readonly newStart: number;
	readonly lines: readonly DiffLine[];
}

export interface DiffFile {
	readonly path: string;
	/** The path before a rename or copy. */
	readonly oldPath: string | null;
	readonly change: FileChange;
	readonly isBinary: boolean;
	readonly oldMode: string | null;
	readonly newMode: string | null;
	readonly hunks: readonly DiffHunk[];
	readonly added: number;
	readonly removed: number;
}

interface FileDraft {
	path: string;
	oldPath: string | null;
	change: FileChange;
	isBinary: boolean;
	oldMode: string | null;
	newMode: string | null;
	hunks: HunkDraft[];
}

interface HunkDraft {
	heading: string;
	oldStart: number;
	newStart: number;
	lines: DiffLine[];
	/** How many lines of each side the header promised and have not come yet. */
	oldLeft: number;
	newLeft: number;
	/** The numbers of the next line on each side. */
	oldNext: number;
	newNext: number;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/;

/** Reads a whole diff. Text before the first file is dropped: it is a commit's message or nothing. */
export function parseDiff(text: string): DiffFile[] {
	const files: FileDraft[] = [];
	const lines = text.split("\n");
	// The last line ends with a line feed, behind which there is no line.
	if (lines.at(-1) === "") lines.pop();
	for (const line of lines) readLine(files, line);
	return files.map(finishFile);
}

function readLine(files: FileDraft[], line: string): void {
	const file = files.at(-1);
	const hunk = file?.hunks.at(-1);
	// Inside a hunk the counts decide: a removed line may begin with `--- ` and look like a header.
	if (hunk !== undefined && (hunk.oldLeft > 0 || hunk.newLeft > 0)) {
		readHunkLine(hunk, line);
	} else if (line.startsWith("diff --git ")) {
		files.push(newFile(line.slice("diff --git ".length)));
	} else if (file === undefined) {
		if (line.startsWith("--- ")) files.push(newFile(""));
		if (line.startsWith("--- ")) readHeader(files[0], line);
	} else if (line.startsWith("--- ") && file.hunks.length > 0) {
		// A plain unified diff has no `diff --git` lines between its files.
		const next = newFile("");
		files.push(next);
		readHeader(next, line);
	} else if (hunk !== undefined && line.startsWith("\\")) {
		hunk.lines.push(noteLine(line.slice(2)));
	} else {
		readHeader(file, line);
	}
}

function newFile(names: string): FileDraft {
	return {
		path: pathOfNames(names),
		oldPath: null,
		change: "modified",
		isBinary: false,
		oldMode: null,
		newMode: null,
		hunks: [],
	};
}

/** `a/x b/x`: the halves are equal but for their first letter, also if the path has spaces. */
function pathOfNames(names: string): string {
	if (names.startsWith('"')) return stripSide(unquote(names.slice(0, names.indexOf('" ') + 1)));
	return stripSide(names.slice(0, (names.length - 1) / 2));
}

function readHeader(file: FileDraft | undefined, line: string): void {
	if (file === undefined) return;
	const header = HUNK.exec(line);
	if (header !== null) {
		file.hunks.push(newHunk(header));
		return;
	}
	const rest = (prefix: string) => (line.startsWith(prefix) ? line.slice(prefix.length) : null);
	const oldName = rest("--- ");
	const newName = rest("+++ ");
	if (oldName !== null) {
		if (isNull(oldName)) file.change = "added";
		else if (file.oldPath === null && file.path === "") file.path = stripSide(nameOf(oldName));
	} else if (newName !== null) {
		if (isNull(newName)) file.change = "deleted";
		else file.path = stripSide(nameOf(newName));
	} else {
		readExtendedHeader(file, rest);
	}
}

function readExtendedHeader(file: FileDraft, rest: (prefix: string) => string | null): void {
	const added = rest("new file mode ");
	const deleted = rest("deleted file mode ");
	const oldMode = rest("old mode ");
	const newMode = rest("new mode ");
	const renamedFrom = rest("rename from ");
	const copiedFrom = rest("copy from ");
	const movedTo = rest("rename to ") ?? rest("copy to ");
	if (added !== null) Object.assign(file, { change: "added", newMode: added });
	else if (deleted !== null) Object.assign(file, { change: "deleted", oldMode: deleted });
	else if (oldMode !== null) file.oldMode = oldMode;
	else if (newMode !== null) file.newMode = newMode;
	else if (renamedFrom !== null) Object.assign(file, { change: "renamed", oldPath: unquote(renamedFrom) });
	else if (copiedFrom !== null) Object.assign(file, { change: "copied", oldPath: unquote(copiedFrom) });
	else if (movedTo !== null) file.path = unquote(movedTo);
	else if (rest("Binary files ") !== null || rest("GIT binary patch") !== null) file.isBinary = true;
}

function newHunk(header: RegExpExecArray): HunkDraft {
	const [, oldStart, oldCount = "1", newStart, newCount = "1", heading = ""] = header;
	return {
		heading,
		oldStart: Number(oldStart),
		newStart: Number(newStart),
		lines: [],
		oldLeft: Number(oldCount),
		newLeft: Number(newCount),
		oldNext: Number(oldStart),
		newNext: Number(newStart),
	};
}

function readHunkLine(hunk: HunkDraft, line: string): void {
	const text = line.slice(1);
	switch (line.charAt(0)) {
		case "+":
			hunk.lines.push({ kind: "added", text, oldLine: null, newLine: countNew(hunk) });
			break;
		case "-":
			hunk.lines.push({ kind: "removed", text, oldLine: countOld(hunk), newLine: null });
			break;
		case "\\":
			hunk.lines.push(noteLine(text.trimStart()));
			break;
		default:
			// Some tools drop the space of an empty context line.
			hunk.lines.push({ kind: "context", text, oldLine: countOld(hunk), newLine: countNew(hunk) });
	}
}

function countOld(hunk: HunkDraft): number {
	hunk.oldLeft -= 1;
	hunk.oldNext += 1;
	return hunk.oldNext - 1;
}

function countNew(hunk: HunkDraft): number {
	hunk.newLeft -= 1;
	hunk.newNext += 1;
	return hunk.newNext - 1;
}

function noteLine(text: string): DiffLine {
	return { kind: "note", text, oldLine: null, newLine: null };
}

function finishFile(file: FileDraft): DiffFile {
	const hunks = file.hunks.map(({ heading, oldStart, newStart, lines }) => ({ heading, oldStart, newStart, lines }));
	const count = (kind: DiffLine["kind"]) =>
		hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.kind === kind).length, 0);
	const isModeOnly =
		file.change === "modified" &&
		hunks.length === 0 &&
		!file.isBinary &&
		file.oldMode !== null &&
		file.newMode !== null;
	return {
		...file,
		change: isModeOnly ? "mode" : file.change,
		hunks,
		added: count("added"),
		removed: count("removed"),
	};
}

function isNull(name: string): boolean {
	return nameOf(name) === "/dev/null";
}

/** A name in a `---` or `+++` line: a tab and a time may follow, and git quotes what is not plain. */
function nameOf(text: string): string {
	return text.startsWith('"') ? unquote(text) : (text.split("\t", 1)[0] ?? "");
}

function stripSide(path: string): string {
	return path.replace(/^[abciow]\//, "");
}

const ESCAPES: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };

/** Reads git's quoting: bytes in octal, which are UTF-8 together. */
function unquote(text: string): string {
	if (!text.startsWith('"') || !text.endsWith('"')) return text;
	const bytes: number[] = [];
	const encoder = new TextEncoder();
	for (const part of text.slice(1, -1).match(/\\[0-7]{3}|\\.|[^\\]+/gu) ?? []) {
		const escaped = part.slice(1);
		if (!part.startsWith("\\")) bytes.push(...encoder.encode(part));
		else if (/^[0-7]{3}$/.test(escaped)) bytes.push(Number.parseInt(escaped, 8) & 0xff);
		else bytes.push(ESCAPES[escaped] ?? escaped.charCodeAt(0));
	}
	return new TextDecoder().decode(new Uint8Array(bytes));
}

/**
 * Several diffs, one after the other, as one: what an agent changed in all of its turns together.
 *
 * A file in the middle is a list of pieces: runs of lines that the base has too, lines that were added, and lines of the
 * base that were removed. Each diff is applied to these pieces. Example: the first diff adds line 2 "a", the second one
 * replaces it by "b"; the pieces end as kept 1, added "b" (by the second diff), kept the rest.
 *
 * Every added line knows the diff that last wrote it. If a diff does not fit (somebody else changed the file between two
 * turns, or it is binary, or was renamed), its changes are shown one after the other, and the path is in `separate`.
 */

import type { DiffFile, DiffHunk, DiffLine, FileChange } from "./diff";

export interface DiffStep {
	/** Names the diff: the id of its artifact. */
	readonly id: string;
	readonly files: readonly DiffFile[];
}

/** Where a line of the whole diff was written: the diff, and the line's number in the file as that diff left it. */
export interface LineOrigin {
	readonly id: string;
	readonly line: number;
}

export interface ComposedDiff {
	readonly files: readonly DiffFile[];
	/** The files whose steps do not fit together and are shown one after the other. */
	readonly separate: readonly string[];
	/** Who last wrote an added line; null if that is not known. */
	readonly originOf: (path: string, newLine: number) => LineOrigin | null;
}

type Piece =
	| { readonly kind: "kept"; readonly oldStart: number; readonly count: number }
	| { readonly kind: "added"; readonly text: string; readonly origin: LineOrigin }
	| { readonly kind: "removed"; readonly text: string; readonly oldLine: number };

interface Step {
	readonly id: string;
	readonly file: DiffFile;
}

const CONTEXT_LINES = 3;

export function composeDiffs(steps: readonly DiffStep[]): ComposedDiff {
	const byPath = new Map<string, Step[]>();
	for (const { id, files } of steps) {
		for (const file of files) byPath.set(file.path, [...(byPath.get(file.path) ?? []), { id, file }]);
	}
	const files: DiffFile[] = [];
	const separate: string[] = [];
	const origins = new Map<string, ReadonlyMap<number, LineOrigin>>();
	for (const path of [...byPath.keys()].toSorted()) {
		const fileSteps = byPath.get(path) ?? [];
		const composed = composeFile(path, fileSteps);
		if (composed === null) {
			files.push(joinSteps(path, fileSteps));
			separate.push(path);
		} else if (composed.file !== null) {
			files.push(composed.file);
			origins.set(path, composed.origins);
		}
	}
	return { files, separate, originOf: (path, newLine) => origins.get(path)?.get(newLine) ?? null };
}

interface ComposedFile {
	/** Null if nothing is changed in the end. */
	readonly file: DiffFile | null;
	readonly origins: ReadonlyMap<number, LineOrigin>;
}

function composeFile(path: string, steps: readonly Step[]): ComposedFile | null {
	const [first] = steps;
	const last = steps.at(-1);
	if (first === undefined || last === undefined) return null;
	const isOpaque = ({ file }: Step) => file.isBinary || file.oldPath !== null;
	if (steps.length > 1 && steps.some(isOpaque)) return null;
	if (steps.length === 1) return { file: first.file, origins: originsOf(first) };
	const base = new BaseText();
	let pieces: Piece[] = [{ kind: "kept", oldStart: 1, count: Number.POSITIVE_INFINITY }];
	for (const step of steps) {
		const next = applyStep(pieces, step, base);
		if (next === null) return null;
		pieces = next;
	}
	const isNew = first.file.change === "added";
	const isGone = last.file.change === "deleted";
	if (isNew && isGone) return { file: null, origins: new Map() };
	const { hunks, origins } = hunksOf(pieces, base);
	const change: FileChange = isNew ? "added" : isGone ? "deleted" : "modified";
	const isSame = change === "modified" && hunks.length === 0 && first.file.oldMode === last.file.newMode;
	if (isSame) return { file: null, origins };
	const count = (kind: DiffLine["kind"]) =>
		hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.kind === kind).length, 0);
	const modes = { oldMode: first.file.oldMode, newMode: last.file.newMode };
	const file: DiffFile = {
		...first.file,
		...modes,
		path,
		change,
		hunks,
		added: count("added"),
		removed: count("removed"),
	};
	return { file, origins };
}

function originsOf({ id, file }: Step): ReadonlyMap<number, LineOrigin> {
	const origins = new Map<number, LineOrigin>();
	for (const { kind, newLine } of file.hunks.flatMap((hunk) => hunk.lines)) {
		if (kind === "added" && newLine !== null) origins.set(newLine, { id, line: newLine });
	}
	return origins;
}

/** The lines of the base that a diff has shown. */
class BaseText {
	readonly #lines = new Map<number, string>();

	/** Returns false if the line was seen with another text. */
	note(line: number, text: string): boolean {
		const known = this.#lines.get(line);
		this.#lines.set(line, text);
		return known === undefined || known === text;
	}

	get(line: number): string | undefined {
		return this.#lines.get(line);
	}
}

/** The pieces after one more diff; null if it does not fit. */
function applyStep(pieces: readonly Piece[], { id, file }: Step, base: BaseText): Piece[] | null {
	const reader = new PieceReader(pieces);
	for (const hunk of file.hunks) {
		const oldCount = hunk.lines.filter(({ oldLine }) => oldLine !== null).length;
		// A hunk that only adds names the line before it.
		reader.copyTo(oldCount === 0 ? hunk.oldStart + 1 : hunk.oldStart);
		for (const line of hunk.lines) {
			if (line.kind === "added" && line.newLine !== null) {
				reader.push({ kind: "added", text: line.text, origin: { id, line: line.newLine } });
			} else if (line.kind === "context" || line.kind === "removed") {
				if (!reader.take(line, base)) return null;
			}
		}
	}
	return reader.finish();
}

/** Walks over pieces by the line numbers of the file that they make, and writes the next ones. */
class PieceReader {
	readonly #rest: Piece[];
	readonly #out: Piece[] = [];
	#line = 1;

	constructor(pieces: readonly Piece[]) {
		this.#rest = pieces.toReversed();
	}

	push(piece: Piece): void {
		this.#out.push(piece);
	}

	/** Copies the lines before this one. */
	copyTo(line: number): void {
		while (this.#line < line) {
			const piece = this.#rest.pop();
			if (piece === undefined) return;
			const length = lengthOf(piece);
			const wanted = line - this.#line;
			if (piece.kind === "kept" && length > wanted) {
				this.#out.push({ ...piece, count: wanted });
				this.#rest.push({ ...piece, oldStart: piece.oldStart + wanted, count: length - wanted });
				this.#line += wanted;
			} else {
				this.#out.push(piece);
				this.#line += length;
			}
		}
	}

	/** Reads one line, which must be this one, and keeps or removes it. */
	take(line: DiffLine, base: BaseText): boolean {
		let piece = this.#rest.pop();
		while (piece?.kind === "removed") {
			this.#out.push(piece);
			piece = this.#rest.pop();
		}
		if (piece === undefined) return false;
		this.#line += 1;
		const isKept = line.kind === "context";
		if (piece.kind === "added") {
			if (isKept) this.#out.push(piece);
			return piece.text === line.text;
		}
		const { oldStart, count } = piece;
		if (count > 1) this.#rest.push({ ...piece, oldStart: oldStart + 1, count: count - 1 });
		if (isKept) this.#out.push({ kind: "kept", oldStart, count: 1 });
		else this.#out.push({ kind: "removed", text: line.text, oldLine: oldStart });
		return base.note(oldStart, line.text);
	}

	finish(): Piece[] {
		return [...this.#out, ...this.#rest.toReversed()];
	}
}

function lengthOf(piece: Piece): number {
	switch (piece.kind) {
		case "kept":
			return piece.count;
		case "added":
			return 1;
		case "removed":
			return 0;
	}
}

/** The changed places with the lines around them, as far as these were seen. */
function hunksOf(pieces: readonly Piece[], base: BaseText): { hunks: DiffHunk[]; origins: Map<number, LineOrigin> } {
	const origins = new Map<number, LineOrigin>();
	const hunks: DiffHunk[] = [];
	let lines: DiffLine[] = [];
	let newLine = 1;
	const close = () => {
		if (lines.length > 0) hunks.push(hunkOf(lines));
		lines = [];
	};
	for (const run of runsOf(pieces)) {
		if (run.kind === "change") {
			lines.push(...run.removed.map(({ text, oldLine }) => removedLine(text, oldLine)));
			for (const { text, origin } of run.added) {
				origins.set(newLine, origin);
				lines.push({ kind: "added", text, oldLine: null, newLine });
				newLine += 1;
			}
			continue;
		}
		const context = contextOf(run, newLine, base, lines.length > 0);
		lines.push(...context.after);
		if (!context.isJoined) close();
		lines.push(...context.before);
		newLine += run.count;
	}
	// What is left has context lines only.
	if (lines.some(({ kind }) => kind !== "context")) close();
	return { hunks, origins };
}

function removedLine(text: string, oldLine: number): DiffLine {
	return { kind: "removed", text, oldLine, newLine: null };
}

type Run =
	| { readonly kind: "kept"; readonly oldStart: number; readonly count: number }
	| {
			readonly kind: "change";
			readonly removed: Extract<Piece, { kind: "removed" }>[];
			readonly added: Extract<Piece, { kind: "added" }>[];
	  };

/** Joins neighbours: kept lines that follow each other, and everything between two kept places. */
function runsOf(pieces: readonly Piece[]): Run[] {
	const runs: Run[] = [];
	for (const piece of pieces) {
		const last = runs.at(-1);
		if (piece.kind === "kept") {
			const isNext = last?.kind === "kept" && last.oldStart + last.count === piece.oldStart;
			if (isNext) runs[runs.length - 1] = { ...last, count: last.count + piece.count };
			else runs.push(piece);
			continue;
		}
		const change: Extract<Run, { kind: "change" }> =
			last?.kind === "change" ? last : { kind: "change", removed: [], added: [] };
		if (change !== last) runs.push(change);
		if (piece.kind === "removed") change.removed.push(piece);
		else change.added.push(piece);
	}
	return runs;
}

/** The lines of a kept run that stand after the change before it and before the change behind it. */
function contextOf(run: Extract<Run, { kind: "kept" }>, newStart: number, base: BaseText, hasChangeBefore: boolean) {
	const lineAt = (offset: number): DiffLine | null => {
		const text = base.get(run.oldStart + offset);
		if (text === undefined || offset < 0 || offset >= run.count) return null;
		return { kind: "context", text, oldLine: run.oldStart + offset, newLine: newStart + offset };
	};
	const after: DiffLine[] = [];
	for (let offset = 0; hasChangeBefore && offset < CONTEXT_LINES; offset += 1) {
		const line = lineAt(offset);
		if (line === null) break;
		after.push(line);
	}
	const before: DiffLine[] = [];
	const end = Number.isFinite(run.count) ? run.count : 0;
	for (let offset = end - 1; offset >= Math.max(after.length, end - CONTEXT_LINES); offset -= 1) {
		const line = lineAt(offset);
		if (line === null) break;
		before.unshift(line);
	}
	return { after, before, isJoined: hasChangeBefore && after.length + before.length === run.count };
}

function hunkOf(lines: readonly DiffLine[]): DiffHunk {
	const oldStart = lines.find(({ oldLine }) => oldLine !== null)?.oldLine ?? 0;
	const newStart = lines.find(({ newLine }) => newLine !== null)?.newLine ?? 0;
	return { heading: "", oldStart, newStart, lines };
}

function joinSteps(path: string, steps: readonly Step[]): DiffFile {
	const hunks = steps.flatMap(({ file }, at) =>
		file.hunks.map((hunk) => ({ ...hunk, heading: `change ${at + 1} of ${steps.length} ${hunk.heading}`.trimEnd() })),
	);
	const [first] = steps;
	const last = steps.at(-1);
	const sum = (count: (file: DiffFile) => number) => steps.reduce((total, { file }) => total + count(file), 0);
	return {
		path,
		oldPath: first?.file.oldPath ?? null,
		change: first?.file.change === "added" ? "added" : (last?.file.change ?? "modified"),
		isBinary: steps.some(({ file }) => file.isBinary),
		oldMode: first?.file.oldMode ?? null,
		newMode: last?.file.newMode ?? null,
		hunks,
		added: sum((file) => file.added),
		removed: sum((file) => file.removed),
	};
}

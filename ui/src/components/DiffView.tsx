/**
 * A diff: files, hunks and lines in one list of which only the visible part is in the document.
 *
 * It fills its parent, which must have a height. `lineRef` names a line that can be asked for its causes; its number is
 * then a button that opens the chain.
 */

import { useMemo, useState } from "react";
import type { DiffFile } from "../model/diff";
import { type DiffPlace, type DiffRow, diffRows, rowOfPlace } from "../model/diff-rows";
import { formatNumberOf } from "../model/quantity";
import { safeText } from "../model/text-safety";
import { cx } from "./cx";
import { DiffFileList } from "./DiffFileList";
import css from "./DiffView.module.css";
import { Icon } from "./Icon";
import { explain } from "./refs/why-store";
import { SafeText } from "./SafeText";
import { VirtualList } from "./VirtualList";

export interface DiffViewProps {
	readonly files: readonly DiffFile[];
	/** The ref of a line of the new file; null if its causes cannot be asked for. */
	readonly lineRef?: (path: string, newLine: number) => string | null;
	/** Whether a list of the files stands beside it. */
	readonly hasTree?: boolean;
	/** What is in view at first; the beginning unless given. */
	readonly first?: DiffPlace | null;
}

/** The number of a line is a button, and a target has at least 24 px. */
const ROW_PX = 24;

export function DiffView({ files, lineRef, hasTree = false, first = null }: DiffViewProps) {
	const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
	const [shown, setShown] = useState<DiffPlace | null>(first);
	const rows = useMemo(() => diffRows(files, folded), [files, folded]);
	if (files.length === 0) return <p>No changes.</p>;
	const toggle = (path: string) => {
		const next = new Set(folded);
		if (!next.delete(path)) next.add(path);
		setFolded(next);
	};
	return (
		<div className={cx(css.diff, hasTree && css.withTree)}>
			{hasTree && (
				<DiffFileList files={files} current={shown?.path ?? null} onChoose={(path) => setShown({ path, line: null })} />
			)}
			<VirtualList
				label={`Changes in ${formatNumberOf(files.length, "file")}`}
				items={rows}
				itemKey={(row) => row.key}
				estimate={ROW_PX}
				scrollTo={shown === null ? null : rowOfPlace(rows, shown)}
				renderItem={(row) => <RowView row={row} onToggle={toggle} lineRef={lineRef} />}
			/>
		</div>
	);
}

interface RowViewProps {
	readonly row: DiffRow;
	readonly onToggle: (path: string) => void;
	readonly lineRef: DiffViewProps["lineRef"];
}

function RowView({ row, onToggle, lineRef }: RowViewProps) {
	switch (row.kind) {
		case "file":
			return <FileHeader file={row.file} isFolded={row.isFolded} onToggle={onToggle} />;
		case "hunk":
			return (
				<div className={css.hunk}>
					@@ {row.hunk.oldStart} → {row.hunk.newStart} <SafeText text={row.hunk.heading} />
				</div>
			);
		case "line":
			return <LineView row={row} lineRef={lineRef} />;
		case "note":
			return <div className={css.note}>{row.text}</div>;
	}
}

interface FileHeaderProps {
	readonly file: DiffFile;
	readonly isFolded: boolean;
	readonly onToggle: (path: string) => void;
}

function FileHeader({ file, isFolded, onToggle }: FileHeaderProps) {
	return (
		<button
			type="button"
			data-item=""
			className={css.file}
			aria-expanded={!isFolded}
			onClick={() => onToggle(file.path)}
		>
			<Icon name={isFolded ? "right" : "down"} size={14} />
			<span className={css.path}>
				{file.oldPath !== null && (
					<>
						<SafeText text={file.oldPath} /> →{" "}
					</>
				)}
				<SafeText text={file.path} />
			</span>
			{file.change !== "modified" && <span className={css.change}>{file.change}</span>}
			<DiffCounts added={file.added} removed={file.removed} />
		</button>
	);
}

/** "+12 −3". */
export function DiffCounts({ added, removed }: { readonly added: number; readonly removed: number }) {
	return (
		<span className={css.counts}>
			<span className={css.plus}>
				+{added}
				<span className="visually-hidden"> added</span>
			</span>{" "}
			<span className={css.minus}>
				−{removed}
				<span className="visually-hidden"> removed</span>
			</span>
		</span>
	);
}

const MARKS = { added: "+", removed: "−", context: " ", note: "\\" } as const;

function LineView({
	row,
	lineRef,
}: {
	readonly row: Extract<DiffRow, { kind: "line" }>;
	readonly lineRef: RowViewProps["lineRef"];
}) {
	const { line, file } = row;
	const ref = line.kind === "added" && line.newLine !== null ? (lineRef?.(file.path, line.newLine) ?? null) : null;
	return (
		<div className={cx(css.line, css[line.kind])}>
			<span className={css.number}>{line.oldLine}</span>
			{ref === null ? (
				<span className={css.number}>{line.newLine}</span>
			) : (
				<button
					type="button"
					data-ref={ref}
					className={css.numberButton}
					aria-label={`Why is line ${line.newLine} of ${safeText(file.path)} here?`}
					onClick={() => explain(ref)}
				>
					{line.newLine}
				</button>
			)}
			<span className={css.mark}>{MARKS[line.kind]}</span>
			<code className={css.text}>
				<LineText text={line.text} />
			</code>
		</div>
	);
}

/** Longer lines are cut: one of a megabyte would stop the page. */
const LINE_CHARS_MAX = 2_000;

function LineText({ text }: { readonly text: string }) {
	const [isWhole, setWhole] = useState(false);
	if (isWhole || text.length <= LINE_CHARS_MAX) return <SafeText text={text} />;
	return (
		<>
			<SafeText text={text.slice(0, LINE_CHARS_MAX)} />…{" "}
			<button type="button" className={css.whole} onClick={() => setWhole(true)}>
				Show the whole line, {formatNumberOf(text.length, "character")}
			</button>
		</>
	);
}

/** The text of an entry as it was written, with ranges marked. A very long one is shown in part, and says so. */

import { type ReactNode, useState } from "react";
import { Button } from "../../components/Button";
import { SafeText } from "../../components/SafeText";
import { piecesOf, type TextRange, windowAround } from "../../model/ledger-text";
import { formatCount } from "../../model/quantity";
import css from "./Ledgers.module.css";

export interface EntryTextProps {
	readonly text: string;
	readonly ranges?: readonly TextRange[];
	/** So much is shown at first. */
	readonly charsMax: number;
	/** Shown instead of the button that shows all of it. */
	readonly more?: ReactNode;
}

const NO_RANGES: readonly TextRange[] = [];

export function EntryText({ text, ranges = NO_RANGES, charsMax, more }: EntryTextProps) {
	const [isWhole, setWhole] = useState(false);
	const shown = windowAround(text, ranges[0]?.start ?? 0, isWhole ? text.length : charsMax);
	const isCut = shown.end - shown.start < text.length;
	const inside = ranges
		.filter(({ start, end }) => start >= shown.start && end <= shown.end)
		.map(({ start, end }) => ({ start: start - shown.start, end: end - shown.start }));
	return (
		<>
			{shown.start > 0 && <p className={css.soft}>{formatCount(shown.start)} characters before this are not shown.</p>}
			<div className={css.text} dir="auto">
				{piecesOf(text.slice(shown.start, shown.end), inside).map((piece) =>
					piece.isMarked ? (
						<mark key={piece.at} className={css.mark} data-mark="">
							<SafeText text={piece.text} />
						</mark>
					) : (
						<SafeText key={piece.at} text={piece.text} />
					),
				)}
			</div>
			{isCut && (
				<p className={css.soft}>
					{shown.end < text.length && `${formatCount(text.length - shown.end)} characters after this are not shown. `}
					{more ?? (
						<Button look="quiet" onClick={() => setWhole(true)}>
							{`Show all ${formatCount(text.length)} characters`}
						</Button>
					)}
				</p>
			)}
		</>
	);
}

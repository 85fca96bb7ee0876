/** Untrusted text. Hidden characters and terminal escapes are marks with a name, and nothing is obeyed. */

import { type EscapeMode, type SafePiece, safePieces } from "../model/text-safety";
import css from "./SafeText.module.css";

export interface SafeTextProps {
	readonly text: string;
	/** Terminal escapes as marks, or left out. */
	readonly escapes?: EscapeMode;
}

export function SafeText({ text, escapes = "show" }: SafeTextProps) {
	const pieces = safePieces(text, escapes);
	const [only] = pieces;
	if (pieces.length === 1 && only?.kind === "text") return only.text;
	return pieces.map((piece, at) => (
		// biome-ignore lint/suspicious/noArrayIndexKey: pieces have no state and no other name.
		<Piece key={at} piece={piece} />
	));
}

function Piece({ piece }: { readonly piece: SafePiece }) {
	switch (piece.kind) {
		case "text":
			return piece.text;
		case "mark":
			return (
				<span className={css.mark} title={`Hidden character U+${piece.codePoint.toString(16).toUpperCase()}`}>
					{piece.name}
				</span>
			);
		case "escape":
			return (
				<span className={css.mark} title="Terminal escape, not obeyed">
					{piece.text}
				</span>
			);
	}
}

/** What a machine wrote: monospaced, lines kept. */
export function MachineText({ text, escapes = "strip" }: SafeTextProps) {
	return (
		<pre className={css.machine} dir="ltr">
			<SafeText text={text} escapes={escapes} />
		</pre>
	);
}

/** A captured turn's text, its content byte for byte, or the terminal's own bytes. */

import { useMemo } from "react";
import { EmptyState } from "../../components/EmptyState";
import { HexView } from "../../components/HexView";
import { LongText } from "../../components/LongText";
import { Skeleton } from "../../components/Skeleton";
import { bytesFromBase64 } from "../../model/bytes";
import type { Schema } from "../../model/schema";
import css from "./Sessions.module.css";

export type TurnView = "text" | "bytes" | "terminal";

export const TURN_VIEWS: readonly { readonly value: TurnView; readonly label: string }[] = [
	{ value: "text", label: "text" },
	{ value: "bytes", label: "bytes" },
	{ value: "terminal", label: "terminal's bytes" },
];

export function readTurnView(text: string | null): TurnView {
	return text === "bytes" || text === "terminal" ? text : "text";
}

export function CapturedTurnContent({
	turn,
	view,
}: {
	readonly turn: Schema<"CapturedTurn">;
	readonly view: TurnView;
}) {
	switch (view) {
		case "text":
			if (turn.text === "") return <p>The program answered without a word.</p>;
			return (
				<div className={css.text}>
					<LongText text={turn.text} />
				</div>
			);
		case "bytes":
			return turn.content_b64 === undefined ? <Skeleton lines={8} /> : <Bytes base64={turn.content_b64} />;
		case "terminal":
			if (turn.raw_b64 === undefined) {
				return (
					<EmptyState title="The terminal's own bytes were not kept" command="turnkeep wrap --keep-raw -- claude">
						They are kept only for sessions that were started with <code>--keep-raw</code>.
					</EmptyState>
				);
			}
			return (
				<>
					{turn.raw_truncated && <p className={css.warning}>The end was cut off: there were too many.</p>}
					<Bytes base64={turn.raw_b64} />
				</>
			);
	}
}

function Bytes({ base64 }: { readonly base64: string }) {
	const bytes = useMemo(() => bytesFromBase64(base64), [base64]);
	return <HexView bytes={bytes} label="Bytes of the captured turn" />;
}

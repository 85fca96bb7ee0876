/** Bytes as rows of hex. Only what is in view is in the document. */

import { useMemo } from "react";
import { hexRow } from "../model/bytes";
import css from "./HexView.module.css";
import { NARROW, useMedia } from "./useMedia";
import { VirtualList } from "./VirtualList";

const ROW_PX = 17;
const BORDERS_PX = 2;

export function HexView({ bytes, label }: { readonly bytes: Uint8Array; readonly label: string }) {
	const width = useMedia(NARROW) ? 8 : 16;
	const rows = useMemo(
		() => Array.from({ length: Math.ceil(bytes.length / width) }, (_, row) => row),
		[bytes.length, width],
	);
	if (bytes.length === 0) return <p>No bytes.</p>;
	return (
		<section
			className={css.frame}
			aria-label={label}
			// biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard.
			tabIndex={0}
			style={{ height: `min(60vh, ${rows.length * ROW_PX + BORDERS_PX}px)` }}
		>
			<VirtualList
				key={width}
				label={label}
				items={rows}
				itemKey={(row) => row}
				estimate={ROW_PX}
				renderItem={(row) => {
					const { offset, hex, text } = hexRow(bytes, row, width);
					return (
						<div className={css.row}>
							<span className={css.offset}>{offset}</span>
							<span>{hex}</span>
							<span className={css.text}>{text}</span>
						</div>
					);
				}}
			/>
		</section>
	);
}

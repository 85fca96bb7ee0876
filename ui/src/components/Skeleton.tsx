/** Grey lines where something is being fetched. They appear after 150 ms, so that a quick answer shows no flicker. */

import css from "./Skeleton.module.css";

export function Skeleton({ lines = 3, label = "Loading" }: { readonly lines?: number; readonly label?: string }) {
	return (
		<div className={css.skeleton} role="status" aria-label={label}>
			{Array.from({ length: lines }, (_, at) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: the lines are all the same.
				<span key={at} className={css.line} style={{ width: `${90 - ((at * 23) % 45)}%` }} />
			))}
		</div>
	);
}

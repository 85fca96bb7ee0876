/** A small piece of text in a line: a label, a count, a filter. What can be clicked is a button or a link. */

import type { ReactNode } from "react";
import css from "./Chip.module.css";
import { cx } from "./cx";

export function Chip({ children, tone }: { readonly children: ReactNode; readonly tone?: "accent" | "waiting" }) {
	return <span className={cx(css.chip, tone !== undefined && css[tone])}>{children}</span>;
}

export interface FilterChipProps {
	readonly isOn: boolean;
	readonly onToggle: () => void;
	readonly children: ReactNode;
	readonly count?: number;
}

/** A filter that is on or off. */
export function FilterChip({ isOn, onToggle, children, count }: FilterChipProps) {
	return (
		<button
			type="button"
			aria-pressed={isOn}
			className={cx(css.chip, css.filter, isOn && css.accent)}
			onClick={onToggle}
		>
			{children}
			{count !== undefined && <span className={css.count}>{count}</span>}
		</button>
	);
}

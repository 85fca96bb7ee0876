/** Tabs whose choice is in the URL: each is a link, so Back works and a tab can be opened elsewhere. */

import { Link } from "wouter";
import { cx } from "./cx";
import css from "./Tabs.module.css";

export interface LinkTab {
	readonly id: string;
	readonly label: string;
	readonly href: string;
	readonly count?: number;
}

export interface LinkTabsProps {
	/** What the tabs choose between. */
	readonly label: string;
	readonly tabs: readonly LinkTab[];
	readonly current: string;
}

export function LinkTabs({ label, tabs, current }: LinkTabsProps) {
	return (
		<nav aria-label={label} className={css.tabs}>
			{tabs.map((tab) => (
				<Link
					key={tab.id}
					href={tab.href}
					className={cx(css.tab, tab.id === current && css.current)}
					aria-current={tab.id === current ? "page" : undefined}
				>
					{tab.label}
					{tab.count !== undefined && tab.count > 0 && <span className={css.count}>{tab.count}</span>}
				</Link>
			))}
		</nav>
	);
}

export interface SegmentsProps<Value extends string> {
	readonly label: string;
	readonly value: Value;
	readonly options: readonly { readonly value: Value; readonly label: string }[];
	readonly onChange: (value: Value) => void;
}

/** A choice of a few words, such as typed | raw | both. */
export function Segments<Value extends string>({ label, value, options, onChange }: SegmentsProps<Value>) {
	return (
		<fieldset className={css.segments}>
			<legend className="visually-hidden">{label}</legend>
			{options.map((option) => (
				<button
					key={option.value}
					type="button"
					aria-pressed={option.value === value}
					className={cx(css.segment, option.value === value && css.chosen)}
					onClick={() => onChange(option.value)}
				>
					{option.label}
				</button>
			))}
		</fieldset>
	);
}

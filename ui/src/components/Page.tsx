/** The frame of a screen: document title, breadcrumb, heading, actions. Every screen has exactly one. */

import { type ReactNode, useEffect } from "react";
import { useWaitingCount } from "../api/waiting";
import { safeText } from "../model/text-safety";
import { cx } from "./cx";
import css from "./Page.module.css";
import { type Crumb, pageStore } from "./page-store";

export interface PageProps {
	/** Names the object: "Fix the test". */
	readonly title: string;
	/** The way to it: `[{ label: "Runs", href: paths.runs() }]`. The title is added as the last one. */
	readonly crumbs?: readonly Crumb[];
	/** What stands beside the title: a state, a chip. */
	readonly aside?: ReactNode;
	readonly actions?: ReactNode;
	/** What stands under the title and above the content: tabs, filters. */
	readonly bar?: ReactNode;
	/** Whether the content fills the window and scrolls by itself: graphs, streams, terminals. */
	readonly isFull?: boolean;
	readonly children: ReactNode;
}

const NO_CRUMBS: readonly Crumb[] = [];

export function Page({ title, crumbs = NO_CRUMBS, aside, actions, bar, isFull = false, children }: PageProps) {
	useDocumentTitle(pageTitle(title, crumbs));
	const crumbText = JSON.stringify([...crumbs, { label: title }]);
	useEffect(() => pageStore.setState({ crumbs: JSON.parse(crumbText) as Crumb[] }), [crumbText]);
	return (
		<div className={cx(css.page, isFull && css.full)}>
			<header className={css.head}>
				<h1 tabIndex={-1} className={css.title}>
					{safeText(title)}
				</h1>
				{aside}
				{actions !== undefined && <div className={css.actions}>{actions}</div>}
			</header>
			{bar !== undefined && <div className={css.bar}>{bar}</div>}
			<div className={css.content}>{children}</div>
		</div>
	);
}

/** "Changes · Fix the test": what is shown, and of which thing, unless the title says it. */
function pageTitle(title: string, crumbs: readonly Crumb[]): string {
	// The first one is the place of the rail.
	const parent = crumbs.slice(1).at(-1)?.label;
	return parent === undefined || title.includes(parent) ? title : `${title} · ${parent}`;
}

/** "(3) Fix the test · Turnkeep": how many things wait, then what is shown. */
function useDocumentTitle(title: string): void {
	const waiting = useWaitingCount();
	useEffect(() => {
		document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${safeText(title)} · Turnkeep`;
	}, [title, waiting]);
}

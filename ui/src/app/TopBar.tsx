/** Where one is, search, the connection, the theme. */

import { Link } from "wouter";
import { useStore } from "zustand";
import { setPreferences, THEMES, type Theme, usePreferences } from "../api/preferences";
import { IconButton } from "../components/Button";
import { Icon } from "../components/Icon";
import { Menu } from "../components/Menu";
import { pageStore } from "../components/page-store";
import { firstLine } from "../model/text-safety";
import { ConnectionState } from "./ConnectionState";
import css from "./TopBar.module.css";

export interface TopBarProps {
	readonly onSearch: () => void;
	readonly onKeys: () => void;
}

export function TopBar({ onSearch, onKeys }: TopBarProps) {
	return (
		<header className={css.bar}>
			<Breadcrumb />
			<div className={css.tools}>
				<button type="button" className={css.search} onClick={onSearch} aria-keyshortcuts="Control+K">
					<Icon name="search" />
					<span className={css.searchWord}>Search</span>
					<span className={css.searchKey} aria-hidden="true">
						<kbd>Ctrl K</kbd>
					</span>
				</button>
				<ConnectionState />
				<ThemeMenu />
				<IconButton label="Keys of this page" icon="keys" className={css.keys ?? ""} onClick={onKeys} />
			</div>
		</header>
	);
}

function Breadcrumb() {
	const crumbs = useStore(pageStore, (state) => state.crumbs);
	return (
		<nav aria-label="Breadcrumb" className={css.crumbs}>
			<ol className={css.list}>
				{crumbs.map((crumb, at) => {
					const isLast = at === crumbs.length - 1;
					const label = firstLine(crumb.label, 40);
					return (
						<li key={`${crumb.href ?? ""} ${crumb.label}`} className={css.crumb}>
							{at > 0 && <span aria-hidden="true">/</span>}
							{crumb.href === undefined ? (
								<span aria-current={isLast ? "page" : undefined}>{label}</span>
							) : (
								<Link href={crumb.href}>{label}</Link>
							)}
						</li>
					);
				})}
			</ol>
		</nav>
	);
}

const THEME_WORDS: Record<Theme, string> = { system: "Follow the system", light: "Light", dark: "Dark" };

function ThemeMenu() {
	const { theme } = usePreferences();
	const actions = THEMES.map((each) => ({
		label: `${each === theme ? "✓ " : ""}${THEME_WORDS[each]}`,
		onSelect: () => setPreferences({ theme: each }),
	}));
	return <Menu trigger={<IconButton label="Theme" icon="theme" />} actions={actions} />;
}

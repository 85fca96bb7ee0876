/**
 * Ctrl-K: actions and things by their names; a pasted ref opens. `>` finds actions, `@` people, `#` ids.
 *
 * The focus stays in the text field; arrows move through the results (the combobox pattern).
 */

import { type KeyboardEvent, useId, useState } from "react";
import { navigate } from "wouter/use-browser-location";
import { cx } from "../components/cx";
import { Dialog } from "../components/Dialog";
import { findItems, readSearch } from "../model/search";
import css from "./SearchDialog.module.css";
import { type FoundItem, useSearchItems } from "./useSearchItems";

export function SearchDialog({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
	return (
		<Dialog title="Search" isOpen={isOpen} onClose={onClose} width="wide" isTitleHidden>
			{isOpen && <Search onClose={onClose} />}
		</Dialog>
	);
}

function Search({ onClose }: { readonly onClose: () => void }) {
	const [typed, setTyped] = useState("");
	const [at, setAt] = useState(0);
	const id = useId();
	const query = readSearch(typed);
	const found = findItems(useSearchItems(query), query);
	const current = Math.min(at, found.length - 1);
	const choose = (item: FoundItem | undefined) => {
		if (item === undefined) return;
		onClose();
		if (item.does.kind === "run") item.does.run();
		else navigate(item.does.path);
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (step !== undefined) setAt((current + step + found.length) % Math.max(found.length, 1));
		else if (event.key === "Enter") choose(found[current]);
		else return;
		event.preventDefault();
	};
	return (
		<>
			<input
				type="text"
				role="combobox"
				aria-label="Search"
				aria-expanded={found.length > 0}
				aria-controls={`${id}-found`}
				aria-activedescendant={current >= 0 ? `${id}-${current}` : undefined}
				autoComplete="off"
				spellCheck={false}
				className={css.input}
				placeholder="Find or paste a ref.   > actions   @ people   # ids"
				value={typed}
				onChange={(event) => {
					setTyped(event.target.value);
					setAt(0);
				}}
				onKeyDown={onKeyDown}
			/>
			<Results id={id} found={found} current={current} onChoose={choose} />
			{found.length === 0 && <p className={css.none}>Nothing found.</p>}
		</>
	);
}

interface ResultsProps {
	readonly id: string;
	readonly found: readonly FoundItem[];
	readonly current: number;
	readonly onChoose: (item: FoundItem) => void;
}

function Results({ id, found, current, onChoose }: ResultsProps) {
	return (
		<div role="listbox" id={`${id}-found`} aria-label="Results" className={css.found}>
			{found.map((item, at) => (
				// The text field has the focus and handles the keys.
				// biome-ignore lint/a11y/useKeyWithClickEvents: see above.
				<div
					key={`${item.group} ${item.id}`}
					id={`${id}-${at}`}
					role="option"
					tabIndex={-1}
					aria-selected={at === current}
					className={cx(css.item, at === current && css.current)}
					onClick={() => onChoose(item)}
					ref={(element) => {
						if (at === current) element?.scrollIntoView({ block: "nearest" });
					}}
				>
					<span className={css.group}>{item.group !== found[at - 1]?.group && item.group}</span>
					<span className={css.label}>{item.label}</span>
					<span className={css.detail}>{item.detail}</span>
				</div>
			))}
		</div>
	);
}

/** JSON as a tree that folds. Everything in it is text; what is long is cut until it is asked for. */

import { useState } from "react";
import { formatNumberOf } from "../model/quantity";
import { Button } from "./Button";
import css from "./JsonView.module.css";
import { SafeText } from "./SafeText";

const TEXT_CHARS_MAX = 500;
const ITEMS_MAX = 100;
/** Levels that are open at the beginning. */
const OPEN_DEPTH = 2;

export function JsonView({ value, label = "JSON" }: { readonly value: unknown; readonly label?: string }) {
	return (
		<section className={css.json} aria-label={label}>
			<JsonValue value={value} depth={0} />
		</section>
	);
}

function JsonValue({ value, depth }: { readonly value: unknown; readonly depth: number }) {
	if (typeof value === "string") return <JsonText text={value} />;
	if (Array.isArray(value)) {
		const entries = value.map((item, at): [string, unknown] => [String(at), item]);
		return <JsonGroup entries={entries} brackets="[]" depth={depth} word="item" />;
	}
	if (typeof value === "object" && value !== null) {
		return <JsonGroup entries={Object.entries(value)} brackets="{}" depth={depth} word="field" />;
	}
	return <span className={css.plain}>{String(value)}</span>;
}

function JsonText({ text }: { readonly text: string }) {
	const [isWhole, setWhole] = useState(false);
	const isCut = text.length > TEXT_CHARS_MAX && !isWhole;
	return (
		<span className={css.text}>
			"<SafeText text={isCut ? text.slice(0, TEXT_CHARS_MAX) : text} />"
			{isCut && (
				<Button look="quiet" onClick={() => setWhole(true)}>
					{`Show all ${formatNumberOf(text.length, "character")}`}
				</Button>
			)}
		</span>
	);
}

interface JsonGroupProps {
	readonly entries: readonly (readonly [string, unknown])[];
	readonly brackets: "[]" | "{}";
	readonly depth: number;
	readonly word: string;
}

function JsonGroup({ entries, brackets, depth, word }: JsonGroupProps) {
	const [isOpen, setOpen] = useState(depth < OPEN_DEPTH);
	const [shownMax, setShownMax] = useState(ITEMS_MAX);
	if (entries.length === 0) return <span className={css.plain}>{brackets}</span>;
	return (
		<details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)} className={css.group}>
			<summary className={css.summary}>
				{brackets[0]}
				<span className={css.count}>{formatNumberOf(entries.length, word)}</span>
			</summary>
			{isOpen && (
				<ul className={css.entries}>
					{entries.slice(0, shownMax).map(([name, value]) => (
						<li key={name}>
							<span className={css.name}>
								<SafeText text={name} />:{" "}
							</span>
							<JsonValue value={value} depth={depth + 1} />
						</li>
					))}
				</ul>
			)}
			{isOpen && entries.length > shownMax && (
				<Button look="quiet" onClick={() => setShownMax(shownMax * 10)}>
					{`Show more of ${formatNumberOf(entries.length, word)}`}
				</Button>
			)}
			<span>{brackets[1]}</span>
		</details>
	);
}

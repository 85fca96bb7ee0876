/** What is searched for. Enter searches; the URL keeps it. */

import { type FormEvent, useState } from "react";
import { navigate } from "wouter/use-browser-location";
import { Button } from "../../components/Button";
import { cx } from "../../components/cx";
import { SelectField, TextField } from "../../components/Field";
import { type Ledger, labelOf, OPERATOR_ID } from "../../model/ledger";
import type { LedgerSearch } from "../../model/ledger-search";
import { firstLine } from "../../model/text-safety";
import css from "./Ledgers.module.css";

export interface SearchFormProps {
	readonly ledger: Ledger | undefined;
	readonly people: readonly string[];
	readonly search: LedgerSearch;
}

export function SearchForm({ ledger, people, search }: SearchFormProps) {
	const [wanted, setWanted] = useState(search);
	const set = (change: Partial<LedgerSearch>) => setWanted((now) => ({ ...now, ...change }));
	const hasFilter = search.by !== null || search.from !== null || search.to !== null;
	const submit = (event: FormEvent) => {
		event.preventDefault();
		navigate(hrefOf(wanted));
	};
	const authors = [OPERATOR_ID, ...people].map((id) => ({ value: id, label: firstLine(labelOf(ledger, id)) }));
	return (
		<search>
			<form onSubmit={submit}>
				<div className={cx(css.fields, css.query)}>
					<TextField
						label="Words"
						type="search"
						value={wanted.q}
						autoComplete="off"
						onChange={(event) => set({ q: event.target.value })}
					/>
					<p>
						<Button type="submit" look="primary" icon="search">
							Search
						</Button>
					</p>
				</div>
				<details className={css.more} open={hasFilter}>
					<summary>Author and time</summary>
					<div className={css.fields}>
						<SelectField
							label="Written by"
							value={wanted.by ?? ""}
							options={[{ value: "", label: "anyone" }, ...authors]}
							onChange={(by) => set({ by: by === "" ? null : by })}
						/>
						<TextField
							label={`From (${ledger?.timezone ?? "UTC"})`}
							type="datetime-local"
							value={wanted.from ?? ""}
							onChange={(event) => set({ from: event.target.value === "" ? null : event.target.value })}
						/>
						<TextField
							label="Before"
							type="datetime-local"
							value={wanted.to ?? ""}
							onChange={(event) => set({ to: event.target.value === "" ? null : event.target.value })}
						/>
					</div>
				</details>
			</form>
		</search>
	);
}

function hrefOf(search: LedgerSearch): string {
	const params = new URLSearchParams(location.search);
	for (const [name, value] of Object.entries(search)) {
		if (value === null || value === "") params.delete(name);
		else params.set(name, value);
	}
	const text = params.toString();
	return `${location.pathname}${text === "" ? "" : `?${text}`}`;
}

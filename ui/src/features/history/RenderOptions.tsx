/** The options of the payload's form. */

import { useSearch } from "wouter";
import { navigate } from "wouter/use-browser-location";
import { SelectField, TextField } from "../../components/Field";
import css from "./History.module.css";
import { optionValue, RENDER_OPTIONS } from "./render-options";

export function RenderOptions() {
	const query = new URLSearchParams(useSearch());
	const set = (name: string, value: string, isDefault: boolean) => {
		const next = new URLSearchParams(location.search);
		if (isDefault) next.delete(name);
		else next.set(name, value);
		const text = next.toString();
		navigate(`${location.pathname}${text === "" ? "" : `?${text}`}`, { replace: true });
	};
	const isExplicit = query.get("type_hint_mode") === "explicit";
	return (
		<details className={css.part}>
			<summary className={css.summary}>Rendering options</summary>
			<div className={css.options}>
				{RENDER_OPTIONS.map((option) => (
					<SelectField
						key={option.name}
						label={option.label}
						value={optionValue(option, query)}
						options={option.values}
						onChange={(value) => set(option.name, value, value === option.values[0]?.value)}
					/>
				))}
				{isExplicit && (
					<>
						<TextField
							label="Type"
							placeholder="turnkeep.Note"
							defaultValue={query.get("as_type_id") ?? ""}
							onBlur={(event) => set("as_type_id", event.target.value.trim(), event.target.value.trim() === "")}
						/>
						<TextField
							label="Its version"
							inputMode="numeric"
							placeholder="1"
							defaultValue={query.get("as_type_version") ?? ""}
							onBlur={(event) => set("as_type_version", event.target.value.trim(), event.target.value.trim() === "")}
						/>
					</>
				)}
			</div>
		</details>
	);
}

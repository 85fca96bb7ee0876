/** Shows only the histories with a label. */

import { type FormEvent, useState } from "react";
import { Button } from "../../components/Button";
import { TextField } from "../../components/Field";
import css from "./History.module.css";

export interface LabelFilterProps {
	readonly label: string;
	readonly onChange: (label: string | null) => void;
}

export function LabelFilter({ label, onChange }: LabelFilterProps) {
	const [text, setText] = useState(label);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		onChange(text.trim() === "" ? null : text.trim());
	};
	return (
		<search>
			<form className={css.filter} onSubmit={submit}>
				<TextField
					label="With the label"
					placeholder="key or key=value"
					value={text}
					onChange={(event) => setText(event.target.value)}
				/>
				<Button type="submit">Filter</Button>
				{label !== "" && <Button onClick={() => onChange(null)}>Show all</Button>}
			</form>
		</search>
	);
}

/** To whom a person writes: everyone, or some. */

import { Checkbox } from "../../components/Field";
import { SafeText } from "../../components/SafeText";
import { Segments } from "../../components/Tabs";
import { type Ledger, labelOf, OPERATOR_ID } from "../../model/ledger";
import css from "./Ledgers.module.css";

export interface ReaderChoiceProps {
	readonly ledger: Ledger;
	readonly people: readonly string[];
	/** Null for everyone. */
	readonly readers: readonly string[] | null;
	readonly onChange: (readers: readonly string[] | null) => void;
}

export function ReaderChoice({ ledger, people, readers, onChange }: ReaderChoiceProps) {
	const toggle = (id: string, isOn: boolean) => {
		const others = (readers ?? []).filter((each) => each !== id);
		onChange(isOn ? [...others, id] : others);
	};
	return (
		<div className={css.readers}>
			<Segments
				label="Who may see it"
				value={readers === null ? "all" : "some"}
				options={[
					{ value: "all", label: "Everyone" },
					{ value: "some", label: "Only some" },
				]}
				onChange={(value) => onChange(value === "all" ? null : [])}
			/>
			{readers !== null && (
				<fieldset className={css.readerList}>
					<legend className="visually-hidden">Readers</legend>
					{[OPERATOR_ID, ...people].map((id) => (
						<Checkbox
							key={id}
							label={<SafeText text={labelOf(ledger, id)} />}
							isOn={readers.includes(id)}
							onChange={(isOn) => toggle(id, isOn)}
						/>
					))}
				</fieldset>
			)}
		</div>
	);
}

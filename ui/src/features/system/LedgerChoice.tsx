/** The choice of a ledger, kept in the URL as `ledger`. */

import { SelectField } from "../../components/Field";
import { useQueryParam } from "../../components/useQueryParam";
import type { Ledger } from "../../model/ledger";
import css from "./System.module.css";

export interface LedgerChoiceProps {
	readonly ledgers: readonly Ledger[];
	/** The chosen one; empty for all of them. */
	readonly value: string;
	/** Whether all ledgers together can be chosen. */
	readonly hasAll?: boolean;
}

export function LedgerChoice({ ledgers, value, hasAll = false }: LedgerChoiceProps) {
	const [, setName] = useQueryParam("ledger");
	const names = ledgers.map(({ world_id }) => ({ value: world_id, label: world_id }));
	return (
		<div className={css.find}>
			<SelectField
				label="Ledger"
				value={value}
				options={hasAll ? [{ value: "", label: "All ledgers" }, ...names] : names}
				onChange={setName}
			/>
		</div>
	);
}

/** The time at which views are looked at; none is now. */

import { Button } from "../../components/Button";
import { TextField } from "../../components/Field";
import type { Ledger } from "../../model/ledger";

export interface AtFieldProps {
	readonly ledger: Ledger;
	readonly at: string | null;
	readonly onChange: (at: string | null) => void;
}

export function AtField({ ledger, at, onChange }: AtFieldProps) {
	return (
		<>
			<TextField
				label={`At this time of the ledger (${ledger.timezone})`}
				type="datetime-local"
				step="1"
				value={at ?? ""}
				onChange={(event) => onChange(event.target.value === "" ? null : event.target.value)}
			/>
			<p>
				<Button blocked={at === null ? "It shows now" : null} onClick={() => onChange(null)}>
					Now
				</Button>
			</p>
		</>
	);
}

/** "Seeing as: Operator ▾": the choice of whose view is shown. */

import { Button } from "../../components/Button";
import { Menu } from "../../components/Menu";
import { type Eyes, type Ledger, labelOf } from "../../model/ledger";
import { firstLine } from "../../model/text-safety";

export interface EyesMenuProps {
	readonly eyes: Eyes;
	readonly ledger: Ledger | undefined;
	/** Ids of those whose view can be chosen. */
	readonly people: readonly string[];
	/** Why there is no audit here. */
	readonly auditBlock?: string | null;
	readonly onChange: (eyes: Eyes) => void;
}

export function EyesMenu({ eyes, ledger, people, auditBlock = null, onChange }: EyesMenuProps) {
	const operator = firstLine(ledger?.operator_label ?? "Operator");
	const name = (id: string) => firstLine(labelOf(ledger, id));
	const now = { operator, audit: "audit", person: eyes.kind === "person" ? name(eyes.person) : "" }[eyes.kind];
	return (
		<Menu
			trigger={
				<Button icon="person" data-tour="eyes">
					{`Seeing as: ${now} ▾`}
				</Button>
			}
			actions={[
				{ label: operator, onSelect: () => onChange({ kind: "operator" }) },
				{
					label: "Audit: everything, read-only",
					blocked: auditBlock,
					onSelect: () => onChange({ kind: "audit" }),
				},
				...people.map((person) => ({
					label: name(person) === person ? person : `${name(person)} (${person})`,
					onSelect: () => onChange({ kind: "person", person }),
				})),
			]}
		/>
	);
}

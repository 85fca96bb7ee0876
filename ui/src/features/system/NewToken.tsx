/** A new token: of which ledger, as whom, and then its form. The drawer stays open, because the secret is shown once. */

import { useState } from "react";
import { Link } from "wouter";
import { paths } from "../../app/paths";
import { Drawer } from "../../components/Drawer";
import { SelectField, TextField } from "../../components/Field";
import { MintToken } from "../../components/tokens/MintToken";
import { isPersonId, type Ledger, labelOf } from "../../model/ledger";
import { parseRef } from "../../model/refs";
import { firstLine } from "../../model/text-safety";
import css from "./System.module.css";

export interface NewTokenProps {
	readonly ledgers: readonly Ledger[];
	/** The ledger that is chosen first. */
	readonly first: string | null;
	readonly onClose: () => void;
}

export function NewToken({ ledgers, first, onClose }: NewTokenProps) {
	const [world, setWorld] = useState(first ?? ledgers[0]?.world_id ?? "");
	const [wanted, setWanted] = useState("");
	const ledger = ledgers.find(({ world_id }) => world_id === world);
	const person = ledger === undefined ? null : personOf(ledger, wanted);
	return (
		<Drawer title="New token" onClose={onClose}>
			<div className={css.form}>
				<SelectField
					label="Of the ledger"
					value={world}
					options={ledgers.map(({ world_id }) => ({ value: world_id, label: world_id }))}
					onChange={(name) => {
						setWorld(name);
						setWanted("");
					}}
				/>
				{ledger !== undefined && <PersonField ledger={ledger} value={person ?? wanted} onChange={setWanted} />}
				{ledger !== undefined && person !== null && (
					<MintToken
						key={`${world}/${person}`}
						world={world}
						person={person}
						name={firstLine(labelOf(ledger, person))}
					/>
				)}
			</div>
		</Drawer>
	);
}

/** Who was chosen: in a closed ledger one of its people, in an open one anybody. */
function personOf(ledger: Ledger, wanted: string): string | null {
	if (ledger.registry === "OPEN") return isPerson(ledger, wanted) ? wanted : null;
	const found = ledger.persons.find(({ person_id }) => person_id === wanted) ?? ledger.persons[0];
	return found?.person_id ?? null;
}

function isPerson(ledger: Ledger, id: string): boolean {
	return isPersonId(id) && parseRef(`person:${ledger.world_id}/${id}`) !== null;
}

interface PersonFieldProps {
	readonly ledger: Ledger;
	readonly value: string;
	readonly onChange: (person: string) => void;
}

function PersonField({ ledger, value, onChange }: PersonFieldProps) {
	if (ledger.registry === "OPEN")
		return (
			<TextField
				label="As the person"
				value={value}
				spellCheck={false}
				autoComplete="off"
				hint="Anyone may take part in this ledger: letters, digits, “_”, “.” and “-”."
				error={value === "" || isPerson(ledger, value) ? null : "No person can have this id"}
				onChange={(event) => onChange(event.target.value.trim())}
			/>
		);
	if (ledger.persons.length === 0)
		return (
			<p>
				Nobody was added to this ledger yet. <Link href={paths.people(ledger.world_id)}>Add a person</Link> first.
			</p>
		);
	return (
		<SelectField
			label="As the person"
			value={value}
			options={ledger.persons.map(({ person_id }) => ({
				value: person_id,
				label: optionOf(person_id, labelOf(ledger, person_id)),
			}))}
			onChange={onChange}
		/>
	);
}

function optionOf(id: string, label: string): string {
	return label === id ? id : `${firstLine(label)} (${id})`;
}

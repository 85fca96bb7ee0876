/** The form of a new ledger, and of changes to one, as the API takes them. */

import type { Ledger } from "./ledger";
import type { Schema } from "./schema";

export interface NewLedger {
	readonly name: string;
	readonly profile: "WORKSPACE" | "NARRATIVE";
	/** One a line: an id, then perhaps a label. */
	readonly people: string;
	readonly operatorLabel: string;
	readonly timezone: string;
	readonly writer: string;
}

export const EMPTY_LEDGER: NewLedger = {
	name: "",
	profile: "WORKSPACE",
	people: "",
	operatorLabel: "",
	timezone: "",
	writer: "",
};

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/** What is wrong with the name of a ledger or a person; null if nothing is. */
export function nameFault(name: string): string | null {
	if (name === "") return "Give it a name first";
	return NAME.test(name)
		? null
		: "The name has 1 to 64 letters, digits, “_”, “.” or “-”, and begins with one of the first two";
}

/** The body of the request. What is empty is left out, so that the server's own defaults apply. */
export function ledgerBody(ledger: NewLedger): Schema<"CreateWorld"> {
	return {
		world_id: ledger.name,
		profile: ledger.profile,
		persons: readPeople(ledger.people),
		...(ledger.operatorLabel.trim() === "" ? {} : { operator_label: ledger.operatorLabel.trim() }),
		...(ledger.timezone === "" ? {} : { timezone: ledger.timezone }),
		...(ledger.writer.trim() === "" ? {} : { writer: ledger.writer.trim() }),
	};
}

/** Reads "coder Ann from the shop" as an id and a label. */
export function readPeople(text: string): Schema<"Person">[] {
	return text
		.split("\n")
		.map((line) => line.trim())
		.filter((line) => line !== "")
		.map((line) => {
			const [, id = line, label = ""] = /^(\S+)\s*(.*)$/.exec(line) ?? [];
			return label === "" ? { person_id: id } : { person_id: id, display_label: label };
		});
}

export interface PersonFields {
	readonly id: string;
	readonly label: string;
	/** With commas between them. */
	readonly aliases: string;
	readonly identity: string;
	readonly isHuman: boolean;
}

/** Every field is sent: the server keeps what a request leaves out, so what was emptied has to be said. */
export function personBody({ id, label, aliases, identity, isHuman }: PersonFields): Schema<"Person"> {
	const names = aliases.split(",").map((alias) => alias.trim());
	return {
		person_id: id,
		display_label: label.trim() === "" ? id : label.trim(),
		aliases: names.filter((alias) => alias !== ""),
		identity: identity.trim() === "" ? null : identity.trim(),
		human: isHuman,
	};
}

/** What can be changed of a ledger. */
export type LedgerSettings = Pick<Ledger, "operator_label" | "timezone" | "registry" | "writer" | "pocket_available">;

export function settingsOf(ledger: Ledger): LedgerSettings {
	const { operator_label, timezone, registry, writer, pocket_available } = ledger;
	return { operator_label, timezone, registry, writer, pocket_available };
}

/** Only what differs, so that nobody's change of something else is undone. */
export function changedSettings(before: LedgerSettings, wanted: LedgerSettings): Schema<"ChangeWorld"> {
	return {
		...(before.operator_label === wanted.operator_label ? {} : { operator_label: wanted.operator_label }),
		...(before.timezone === wanted.timezone ? {} : { timezone: wanted.timezone }),
		...(before.registry === wanted.registry ? {} : { registry: wanted.registry }),
		...(before.writer === wanted.writer ? {} : { writer: wanted.writer }),
		...(before.pocket_available === wanted.pocket_available ? {} : { pocket_available: wanted.pocket_available }),
	};
}

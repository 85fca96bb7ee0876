/** Who a person is, in a line. */

import { Link } from "wouter";
import { paths } from "../../app/paths";
import { CopyButton } from "../../components/CopyButton";
import { SafeText } from "../../components/SafeText";
import { isPersonId, joinNames, type Ledger } from "../../model/ledger";
import type { Schema } from "../../model/schema";
import css from "./Ledgers.module.css";

export interface PersonLineProps {
	readonly world: string;
	readonly ledger: Ledger;
	readonly person: string;
	readonly known: Schema<"Person"> | null;
}

export function PersonLine({ world, ledger, person, known }: PersonLineProps) {
	if (known === null) {
		return (
			<p className={css.personLine}>
				{isPersonId(person) && ledger.registry === "OPEN"
					? "This name was not added, but in this ledger anyone whose name is used takes part."
					: "Not found: there is no such person in this ledger."}{" "}
				<Link href={paths.people(world)}>People</Link>
			</p>
		);
	}
	const aliases = known.aliases ?? [];
	return (
		<p className={css.personLine}>
			<span className={css.code}>
				<code>
					<SafeText text={person} />
				</code>
				<CopyButton text={`person:${world}/${person}`} label="Copy the ref" />
			</span>
			<span>{known.human === true ? "human" : "agent"}</span>
			{known.identity != null && <SafeText text={known.identity} />}
			{aliases.length > 0 && (
				<span className={css.soft}>
					also called <SafeText text={joinNames(aliases)} />
				</span>
			)}
			<Link href={paths.ledger(world, { as: person })}>See the ledger as this person</Link>
		</p>
	);
}

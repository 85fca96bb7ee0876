/** Texts that were made from entries and name them: the current scene, and the notes about people. */

import { useQueries, useQuery } from "@tanstack/react-query";
import { keys } from "../../api/keys";
import { RefChip } from "../../components/refs/RefChip";
import { type Entry, type Eyes, eyesKey, knownPeople, type Ledger, labelOf } from "../../model/ledger";
import css from "./Ledgers.module.css";
import { capsuleQuery, fetchScene } from "./ledger-queries";

export interface CitationsProps {
	readonly world: string;
	readonly ledger: Ledger | undefined;
	readonly eyes: Eyes;
	readonly entry: Entry;
}

/** Each person's note is a request of its own. */
const PEOPLE_MAX = 30;

export function Citations({ world, ledger, eyes, entry }: CitationsProps) {
	const id = entry.entry_id ?? "";
	const isAudit = eyes.kind === "audit";
	const scene = useQuery({
		queryKey: keys.world(world, "scene", eyesKey(eyes)),
		queryFn: ({ signal }) => fetchScene(world, eyes, signal),
		enabled: !isAudit,
	});
	const people = knownPeople(ledger).slice(0, PEOPLE_MAX);
	const capsules = useQueries({
		queries: isAudit ? [] : people.map((person) => capsuleQuery(world, person, eyes)),
	});
	if (isAudit)
		return (
			<p className={css.soft}>Scenes and notes are made for a reader: leave the audit to see those that cite it.</p>
		);
	const isInScene = scene.data?.provenance.used_entry_ids.includes(id) === true;
	const noted = people.filter((_, at) =>
		capsules[at]?.data?.sections.some(
			({ name, provenance }) => name === "OPTIONAL_DERIVED" && provenance.used_entry_ids.includes(id),
		),
	);
	return (
		<>
			<p className={css.soft}>
				{isInScene ? "The current scene is based on it." : "The current scene is not based on it."}
			</p>
			{noted.map((person) => (
				<p key={person}>
					The newest note about <RefChip to={{ kind: "person", world, id: person }} name={labelOf(ledger, person)} />{" "}
					cites it.
				</p>
			))}
			<p className={css.soft}>Earlier scenes and notes are not searched.</p>
		</>
	);
}

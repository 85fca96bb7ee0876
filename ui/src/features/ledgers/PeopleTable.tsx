/** The people who were added, with what they may do and what is known about them. */

import { useQuery } from "@tanstack/react-query";
import { tokensQuery } from "../../api/queries";
import { paths } from "../../app/paths";
import { type Column, DataTable } from "../../components/DataTable";
import { SafeText } from "../../components/SafeText";
import type { Schema } from "../../model/schema";
import css from "./Ledgers.module.css";

type Person = Schema<"Person">;

export interface PeopleTableProps {
	readonly world: string;
	readonly people: readonly Person[];
}

export function PeopleTable({ world, people }: PeopleTableProps) {
	const { data: tokens } = useQuery(tokensQuery(world));
	const columns: Column<Person>[] = [
		{
			id: "label",
			header: "Person",
			minWidth: 140,
			cell: ({ display_label, person_id }) => <SafeText text={display_label ?? person_id} />,
		},
		{ id: "id", header: "Id", minWidth: 120, drop: 2, cell: ({ person_id }) => <SafeText text={person_id} /> },
		{
			id: "identity",
			header: "Who that is",
			minWidth: 160,
			grow: 1,
			drop: 1,
			cell: ({ identity }) =>
				identity == null ? <span className={css.soft}>not said</span> : <SafeText text={identity} />,
		},
		{ id: "kind", header: "Kind", minWidth: 80, drop: 3, cell: ({ human }) => (human === true ? "human" : "agent") },
		{ id: "tokens", header: "Access", minWidth: 150, cell: ({ person_id }) => accessWords(tokens, person_id) },
	];
	return (
		<DataTable
			label="People"
			columns={columns}
			rows={people}
			rowKey={({ person_id }) => person_id}
			rowHref={({ person_id }) => paths.person(world, person_id)}
			rowRef={({ person_id }) => ({ kind: "person", world, id: person_id })}
		/>
	);
}

function accessWords(tokens: readonly Schema<"Token">[] | undefined, person: string): string {
	if (tokens === undefined) return "";
	const own = tokens.filter(({ person_id }) => person_id === person);
	if (own.length === 0) return "no token";
	const count = own.length === 1 ? "1 token" : `${own.length} tokens`;
	return own.some(({ write }) => write) ? `${count}, may write` : `${count}, reads only`;
}

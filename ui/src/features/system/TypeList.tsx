/** All known types: those of programs first, then Turnkeep's own. */

import { paths } from "../../app/paths";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { TextField } from "../../components/Field";
import { SafeText } from "../../components/SafeText";
import { useQueryParam } from "../../components/useQueryParam";
import type { Schema } from "../../model/schema";
import { versionNumbers } from "../../model/type-versions";
import css from "./System.module.css";

type TypeSummary = Schema<"TypeSummary">;

/** The types of what Turnkeep itself records: runs, ledgers, captured turns. */
const OWN = "turnkeep.";

const EXAMPLE = `turnkeep registry put - <<'END'
{"registry_version": 1, "bundle_id": "notes#1", "enums": {},
 "types": {"com.example.Note": {"versions": {"1": {"fields":
  {"1": {"name": "text", "type": "string"}}}}}}}
END`;

export function TypeList({ types }: { readonly types: readonly TypeSummary[] }) {
	const [words, setWords] = useQueryParam("find");
	const found = types.filter(({ type_id }) => type_id.toLowerCase().includes((words ?? "").trim().toLowerCase()));
	const groups = [
		{ title: "Types of programs", types: found.filter(({ type_id }) => !type_id.startsWith(OWN)) },
		{ title: "Types of Turnkeep", types: found.filter(({ type_id }) => type_id.startsWith(OWN)) },
	];
	if (types.length === 0)
		return (
			<EmptyState title="No types yet" command={EXAMPLE}>
				A type says what the fields of a turn are called, so that a turn is shown by name and not as bytes. Programs
				publish their types; Turnkeep publishes its own with the first run or ledger entry. This command publishes one:
			</EmptyState>
		);
	return (
		<>
			<div className={css.tools}>
				<div className={css.find}>
					<TextField
						label="Find"
						placeholder="part of a name"
						value={words ?? ""}
						onChange={(event) => setWords(event.currentTarget.value, { replace: true })}
					/>
				</div>
			</div>
			{found.length === 0 && <p role="status">No type has this in its name.</p>}
			{groups.map((group) =>
				group.types.length === 0 ? null : (
					<section key={group.title} className={css.group} aria-label={group.title}>
						<h2>{group.title}</h2>
						<DataTable
							label={group.title}
							columns={COLUMNS}
							rows={group.types}
							rowKey={({ type_id }) => type_id}
							rowHref={({ type_id }) => paths.system("types", { id: type_id })}
							rowRef={({ type_id }) => ({ kind: "type", id: type_id, version: null })}
						/>
					</section>
				),
			)}
		</>
	);
}

const COLUMNS: readonly Column<TypeSummary>[] = [
	{ id: "type", header: "Type", minWidth: 200, grow: 1, cell: ({ type_id }) => <SafeText text={type_id} /> },
	{ id: "newest", header: "Newest version", minWidth: 120, align: "end", cell: ({ latest_version }) => latest_version },
	{
		id: "versions",
		header: "Versions",
		minWidth: 160,
		align: "end",
		drop: 1,
		cell: ({ versions }) => versionNumbers(versions),
	},
];

/** The fields of a type: a row for each tag, a column for each version. What differs from the version before says so. */

import { cx } from "../../components/cx";
import { type Column, DataTable } from "../../components/DataTable";
import { RefChip } from "../../components/refs/RefChip";
import { SafeText } from "../../components/SafeText";
import {
	type FieldCell,
	type FieldChange,
	type FieldRow,
	type FieldWords,
	type TypeVersion,
	typePieces,
} from "../../model/type-versions";
import css from "./System.module.css";

export interface FieldsTableProps {
	readonly versions: readonly TypeVersion[];
	readonly rows: readonly FieldRow[];
	/** The ids of types that have a page. */
	readonly known: ReadonlySet<string>;
}

export function FieldsTable({ versions, rows, known }: FieldsTableProps) {
	const isAlone = versions.length === 1;
	const columns: Column<FieldRow>[] = [
		{ id: "tag", header: "Tag", minWidth: 44, cell: ({ tag }) => <code>{tag}</code> },
		...versions.map(
			({ type_version }, at): Column<FieldRow> => ({
				id: String(type_version),
				header: `Version ${type_version}`,
				minWidth: 150,
				grow: 1,
				cell: ({ cells }) => <FieldView cell={cells[at]} known={known} isAlone={isAlone} />,
				// The oldest ones go first, and the newest one stays.
				...(at === versions.length - 1 ? {} : { drop: at + 1 }),
			}),
		),
	];
	if (rows.length === 0) return <p className={css.soft}>It has no fields.</p>;
	return <DataTable label="Fields by version" columns={columns} rows={rows} rowKey={({ tag }) => tag} />;
}

/** What stands beside a field; nothing where it is as it was. */
const CHANGE_WORDS: Partial<Record<FieldChange, string>> = { added: "+ added", changed: "≠ changed", gone: "− gone" };

interface FieldViewProps {
	readonly cell: FieldCell | undefined;
	readonly known: ReadonlySet<string>;
	/** Whether there is no version to compare with. */
	readonly isAlone: boolean;
}

function FieldView({ cell, known, isAlone }: FieldViewProps) {
	if (cell === undefined || cell.change === "absent") return <span className={css.soft}>—</span>;
	const { change, field, was } = cell;
	const word = CHANGE_WORDS[change];
	return (
		<div>
			<p className={css.fieldName}>
				{field !== null && (
					<span className={cx((word !== undefined || isAlone) && css.strong)}>
						<SafeText text={field.name} />
					</span>
				)}
				{word !== undefined && <span className={cx(css.change, css[change])}>{word}</span>}
			</p>
			{field !== null && <FieldType field={field} known={known} />}
			{was.map((words) => (
				<p key={words} className={css.changed}>
					<SafeText text={words} />
				</p>
			))}
		</div>
	);
}

function FieldType({ field, known }: { readonly field: FieldWords; readonly known: ReadonlySet<string> }) {
	return (
		<p className={css.soft}>
			{typePieces(field.type, known).map(({ at, text, isType }) =>
				isType ? (
					<RefChip key={at} to={{ kind: "type", id: text, version: null }} name={text} />
				) : (
					<SafeText key={at} text={text} />
				),
			)}
			{field.isOptional && ", optional"}
			{field.more !== "" && (
				<>
					, <code>{field.more}</code>
				</>
			)}
		</p>
	);
}

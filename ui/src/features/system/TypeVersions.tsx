/** One type: which versions there are, their fields side by side, and the labels of their enums. */

import { useQueries } from "@tanstack/react-query";
import { FilterChip } from "../../components/Chip";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import type { Schema } from "../../model/schema";
import { fieldRows, shownVersions, type TypeVersion, toggledVersions } from "../../model/type-versions";
import { EnumLabels } from "./EnumLabels";
import { FieldsTable } from "./FieldsTable";
import css from "./System.module.css";
import { typeVersionQuery } from "./type-version-query";
import { VersionFacts } from "./VersionFacts";

export interface TypeVersionsProps {
	readonly type: Schema<"TypeSummary">;
	/** All known types, for those that the fields name. */
	readonly types: readonly Schema<"TypeSummary">[];
}

export function TypeVersions({ type, types }: TypeVersionsProps) {
	const [chosen, setChosen] = useQueryParam("versions");
	const [named] = useQueryParam("version");
	const shown = shownVersions(type.versions, chosen, named);
	const answers = useQueries({ queries: shown.map((version) => typeVersionQuery(type.type_id, version)) });
	const versions = answers.flatMap(({ data }) => data ?? []);
	const failed = answers.find(({ error }) => error !== null);
	const isNamedMissing = named !== null && !type.versions.map(String).includes(named);
	return (
		<>
			{isNamedMissing && <p role="status">{`Version ${named} of this type is not known here.`}</p>}
			{type.versions.length > 1 && (
				<fieldset className={css.filters}>
					<legend className="visually-hidden">Versions that are shown</legend>
					{type.versions.map((version) => (
						<FilterChip
							key={version}
							isOn={shown.includes(version)}
							onToggle={() => setChosen(toggledVersions(shown, version))}
						>
							{`version ${version}`}
						</FilterChip>
					))}
				</fieldset>
			)}
			{failed !== undefined && <ErrorNote error={failed.error} onRetry={() => void failed.refetch()} />}
			{versions.length < shown.length && failed === undefined && <Skeleton lines={8} />}
			{versions.length === shown.length && (
				<SideBySide versions={versions} latest={type.latest_version} types={types} />
			)}
		</>
	);
}

interface SideBySideProps {
	readonly versions: readonly TypeVersion[];
	readonly latest: number;
	readonly types: readonly Schema<"TypeSummary">[];
}

function SideBySide({ versions, latest, types }: SideBySideProps) {
	const rows = fieldRows(versions);
	return (
		<>
			<VersionFacts versions={versions} rows={rows} latest={latest} />
			<FieldsTable versions={versions} rows={rows} known={new Set(types.map(({ type_id }) => type_id))} />
			<EnumLabels versions={versions} />
		</>
	);
}

/** Of each version that is shown: what published it, and how it differs from the one before. */

import { Facts } from "../../components/Card";
import { SafeText } from "../../components/SafeText";
import { changeSummary, type FieldRow, type TypeVersion } from "../../model/type-versions";
import css from "./System.module.css";

export interface VersionFactsProps {
	readonly versions: readonly TypeVersion[];
	readonly rows: readonly FieldRow[];
	readonly latest: number;
}

export function VersionFacts({ versions, rows, latest }: VersionFactsProps) {
	return (
		<div className={css.facts}>
			<Facts
				facts={versions.map(({ type_version, bundle_id }, at) => [
					`Version ${type_version}`,
					<span key={type_version}>
						published as{" "}
						<a href={`/v1/registry/bundles/${encodeURIComponent(bundle_id)}`} download="bundle.json">
							<SafeText text={bundle_id} />
						</a>
						{type_version === latest && ", the newest"}
						<Summary words={changeSummary(rows, at)} before={versions[at - 1]?.type_version} />
					</span>,
				])}
			/>
		</div>
	);
}

function Summary({ words, before }: { readonly words: string; readonly before: number | undefined }) {
	if (before === undefined) return null;
	return <span className={css.soft}>{` · since version ${before}: ${words}`}</span>;
}

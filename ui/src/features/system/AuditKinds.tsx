/** The kinds of lines that can be shown alone. The choice is in the URL. */

import { FilterChip } from "../../components/Chip";
import { useQueryParam } from "../../components/useQueryParam";
import { AUDIT_KIND_WORDS, AUDIT_KINDS, type AuditLine, readAuditKind } from "../../model/audit";
import { countAuditKinds } from "../../model/audit-trail";
import css from "./System.module.css";

export function AuditKinds({ lines }: { readonly lines: readonly AuditLine[] }) {
	const [kindText, setKind] = useQueryParam("kind");
	const chosen = readAuditKind(kindText);
	const counts = countAuditKinds(lines);
	// A kind without lines stays while it is chosen, so that it can be switched off.
	const kinds = AUDIT_KINDS.filter((kind) => counts.has(kind) || kind === chosen);
	return (
		<fieldset className={css.filters}>
			<legend className="visually-hidden">Only lines about</legend>
			{kinds.map((kind) => (
				<FilterChip
					key={kind}
					isOn={kind === chosen}
					count={counts.get(kind) ?? 0}
					onToggle={() => setKind(kind === chosen ? null : kind)}
				>
					{AUDIT_KIND_WORDS[kind]}
				</FilterChip>
			))}
		</fieldset>
	);
}

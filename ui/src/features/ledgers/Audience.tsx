/** Who may see an entry: a lock and names, nothing for everyone. */

import { Icon } from "../../components/Icon";
import { audienceOf, audienceWords, type Ledger, labelOf, type Visibility } from "../../model/ledger";
import { firstLine } from "../../model/text-safety";
import css from "./Ledgers.module.css";

export interface AudienceProps {
	readonly visibility: Visibility | null;
	/** The author's id, where it is known. */
	readonly author: string | null;
	/** The author's label, where only that is known. */
	readonly authorLabel?: string | null;
	readonly ledger: Ledger | undefined;
}

const CHARS_MAX = 200;

export function Audience({ visibility, author, authorLabel = null, ledger }: AudienceProps) {
	const readers = audienceOf(visibility, author);
	if (readers === null) return null;
	const names = readers.map((id) => labelOf(ledger, id));
	// A reader is shown once, although the author is known by its label alone.
	const all = authorLabel === null || names.includes(authorLabel) ? names : [authorLabel, ...names];
	return (
		<span className={css.audience}>
			<Icon name="lock" size={12} />
			{firstLine(
				audienceWords(all, (name) => name),
				CHARS_MAX,
			)}
		</span>
	);
}

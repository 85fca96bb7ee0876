/** The labels of the enums that a type's fields name, by number. */

import { SafeText } from "../../components/SafeText";
import { enumWords, type TypeVersion } from "../../model/type-versions";
import css from "./System.module.css";

export function EnumLabels({ versions }: { readonly versions: readonly TypeVersion[] }) {
	const enums = enumWords(versions);
	if (enums.length === 0) return null;
	return (
		<section className={css.group} aria-label="Enums">
			<h2>Enums</h2>
			{enums.map(({ id, labels }) => (
				<section key={id} className={css.enum}>
					<h3>
						<SafeText text={id} />
					</h3>
					{labels.length === 0 ? (
						<p className={css.soft}>No label was published: its numbers are shown as they are.</p>
					) : (
						<ul className={css.labels}>
							{labels.map(([number, label]) => (
								<li key={number}>
									<code className={css.soft}>{number}</code> <SafeText text={label} />
								</li>
							))}
						</ul>
					)}
				</section>
			))}
		</section>
	);
}

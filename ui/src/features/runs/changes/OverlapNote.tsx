/** Files that agents in different places changed: they may conflict, and a verification or an apply finds out. */

import { Card } from "../../../components/Card";
import { RefChip } from "../../../components/refs/RefChip";
import { SafeText } from "../../../components/SafeText";
import type { RunChanges } from "../../../model/changes";
import css from "./Changes.module.css";

export function OverlapNote({ changes: { overlaps } }: { readonly changes: RunChanges }) {
	if (overlaps.length === 0) return null;
	return (
		<Card title="Changed by more than one agent">
			<ul className={css.overlaps}>
				{overlaps.map(({ path, nodes }) => (
					<li key={path} className={css.overlap}>
						<code className={css.path}>
							<SafeText text={path} />
						</code>
						{nodes.map((node) => (
							<RefChip key={node.id} to={{ kind: "node", id: node.id }} name={node.label} />
						))}
					</li>
				))}
			</ul>
			<p className={css.soft}>
				Different places of a file are merged. The same place is a conflict: verifying and applying name it, and change
				nothing.
			</p>
		</Card>
	);
}

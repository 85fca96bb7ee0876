/** What a history belongs to: a run, an agent and its run, a session, a ledger. */

import { RefChip } from "../../components/refs/RefChip";
import { originRef, runOf } from "../../model/history";
import css from "./History.module.css";

export function OriginChips({ labels }: { readonly labels: Readonly<Record<string, string>> }) {
	const ref = originRef(labels);
	if (ref === null) return null;
	const run = runOf(labels);
	return (
		<span className={css.tools}>
			<RefChip to={ref} name={labels.name} />
			{run !== null && `run:${run}` !== ref && <RefChip to={`run:${run}`} />}
		</span>
	);
}

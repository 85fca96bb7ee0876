/** The coloured bar of a ledger that is seen as somebody else, or audited; with the way back. */

import { Link } from "wouter";
import { SafeText } from "../../components/SafeText";
import { type Eyes, type Ledger, labelOf } from "../../model/ledger";
import css from "./Ledgers.module.css";

export interface EyesBarProps {
	readonly eyes: Eyes;
	readonly ledger: Ledger | undefined;
	/** Where the operator's own view is. */
	readonly back: string;
	/** What an audit shows here; every entry unless given. */
	readonly shows?: string;
}

export function EyesBar({ eyes, ledger, back, shows = "every entry, whoever it was addressed to" }: EyesBarProps) {
	if (eyes.kind === "operator") return null;
	return (
		<section aria-label="Whose view this is" className={css.eyesBar}>
			<p>
				{eyes.kind === "audit" ? (
					<>
						<strong>Audit:</strong> {shows}. It is read-only.
					</>
				) : (
					<>
						<strong>
							You see and write as <SafeText text={labelOf(ledger, eyes.person)} />
						</strong>
						: exactly what this person sees.
					</>
				)}{" "}
				Each look is logged.
			</p>
			<Link href={back} className={css.back}>
				Back to <SafeText text={ledger?.operator_label ?? "Operator"} />
			</Link>
		</section>
	);
}

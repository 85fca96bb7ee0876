/** Links to the captured turns before and after. */

import { Link } from "wouter";
import { paths } from "../../app/paths";
import css from "./Sessions.module.css";

export interface TurnStepsProps {
	readonly session: string;
	readonly older: string | null;
	readonly newer: string | null;
}

export function TurnSteps({ session, older, newer }: TurnStepsProps) {
	return (
		<nav aria-label="Other captured turns" className={css.row}>
			{older !== null && <Link href={paths.capturedTurn(session, older)}>{`Older: #${older}`}</Link>}
			{newer !== null && <Link href={paths.capturedTurn(session, newer)}>{`Newer: #${newer}`}</Link>}
		</nav>
	);
}

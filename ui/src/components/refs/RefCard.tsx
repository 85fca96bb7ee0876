/** What a ref names, in short: kind, name, text form to copy, and the way to its chain. */

import { formatRef, hasChain, type Ref, refKindWord } from "../../model/refs";
import { Button } from "../Button";
import { CopyButton } from "../CopyButton";
import { SafeText } from "../SafeText";
import css from "./RefChip.module.css";
import { explain } from "./why-store";

export interface RefCardProps {
	readonly to: Ref;
	readonly name?: string | undefined;
}

export function RefCard({ to, name }: RefCardProps) {
	const text = formatRef(to);
	return (
		<div className={css.cardBody}>
			<p className={css.kind}>{refKindWord(to.kind)}</p>
			{name !== undefined && (
				<p>
					<SafeText text={name} />
				</p>
			)}
			<p className={css.row}>
				<code className={css.ref}>
					<SafeText text={text} />
				</code>
				<CopyButton text={text} label="Copy the ref" />
				{hasChain(to) && (
					<Button look="quiet" icon="chain" onClick={() => explain(text)}>
						Why
					</Button>
				)}
			</p>
		</div>
	);
}

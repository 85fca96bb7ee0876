/** `.`: what can be done with the focused thing. What changes it, and what only its page offers, is on its page. */

import { navigate } from "wouter/use-browser-location";
import { Button } from "../components/Button";
import { CopyButton } from "../components/CopyButton";
import { Dialog } from "../components/Dialog";
import { useRefName } from "../components/refs/useRefName";
import { explain } from "../components/refs/why-store";
import { formatRef, hasChain, type Ref, refKindWord, shortRefName } from "../model/refs";
import { firstLine } from "../model/text-safety";
import css from "./RefActionsDialog.module.css";
import { placesOfRef } from "./ref-places";

export function RefActionsDialog({ of: ref, onClose }: { readonly of: Ref; readonly onClose: () => void }) {
	const text = formatRef(ref);
	const name = firstLine(useRefName(ref, undefined) ?? shortRefName(ref), 60);
	const choose = (act: () => void) => () => {
		onClose();
		act();
	};
	return (
		<Dialog title={`${refKindWord(ref.kind)} ${name}`} isOpen onClose={onClose}>
			<ul className={css.actions}>
				{placesOfRef(ref).map(({ label, path }) => (
					<li key={path}>
						<Button onClick={choose(() => navigate(path))}>{label}</Button>
					</li>
				))}
				{hasChain(ref) && (
					<li>
						<Button icon="chain" onClick={choose(() => explain(text))}>
							Why is it here?
						</Button>
					</li>
				)}
				<li className={css.copy}>
					<code>{firstLine(text)}</code>
					<CopyButton text={text} label="Copy the ref" />
				</li>
			</ul>
		</Dialog>
	);
}

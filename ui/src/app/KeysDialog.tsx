/** `?`: the keys of this page, and the switch that turns letters off. */

import { setPreferences, usePreferences } from "../api/preferences";
import { Dialog } from "../components/Dialog";
import { Checkbox } from "../components/Field";
import { keyScopes } from "../components/keys";
import css from "./KeysDialog.module.css";

export function KeysDialog({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
	return (
		<Dialog title="Keys of this page" isOpen={isOpen} onClose={onClose}>
			{isOpen && <KeyList />}
		</Dialog>
	);
}

function KeyList() {
	const { letters } = usePreferences();
	return (
		<>
			{keyScopes().map((scope) => (
				<section key={scope.name} className={css.scope}>
					<h3>{scope.name}</h3>
					<dl>
						{scope.bindings.map((binding) => (
							<div key={binding.key} className={css.key}>
								<dt>
									{binding.key.split(" ").map((part) => (
										<kbd key={part}>{part.replace("Arrow", "")}</kbd>
									))}
								</dt>
								<dd>{binding.does}</dd>
							</div>
						))}
					</dl>
				</section>
			))}
			<dl className={css.scope}>
				<div className={css.key}>
					<dt>
						<kbd>Esc</kbd>
					</dt>
					<dd>close one thing</dd>
				</div>
			</dl>
			<Checkbox
				label="Single letters act (they never do while you type)"
				isOn={letters}
				onChange={(isOn) => setPreferences({ letters: isOn })}
			/>
		</>
	);
}

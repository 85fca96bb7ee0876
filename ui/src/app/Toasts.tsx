/** What was done, in a corner. The live region reads it. */

import { useStore } from "zustand";
import { Button, IconButton } from "../components/Button";
import { SafeText } from "../components/SafeText";
import { dismissToast, toastStore } from "../components/toasts";
import css from "./Toasts.module.css";

export function Toasts() {
	const toasts = useStore(toastStore, (state) => state.toasts);
	if (toasts.length === 0) return null;
	return (
		<ul className={css.toasts}>
			{toasts.map(({ id, text, action }) => (
				<li key={id} className={css.toast}>
					<span>
						<SafeText text={text} />
					</span>
					{action !== undefined && (
						<Button look="quiet" onClick={action.run}>
							{action.label}
						</Button>
					)}
					<IconButton label="Dismiss" icon="close" onClick={() => dismissToast(id)} />
				</li>
			))}
		</ul>
	);
}

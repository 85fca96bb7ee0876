/** Which session gets it, and how it is typed. */

import { Checkbox, SelectField } from "../../components/Field";
import { type Session, sessionName, sessionWords } from "../../model/session";
import { safeText } from "../../model/text-safety";
import type { DeliverForm } from "./deliver-form";
import css from "./Sessions.module.css";

export interface InjectFieldsProps {
	readonly form: DeliverForm;
	readonly sessions: readonly Session[];
	readonly onChange: (part: Partial<DeliverForm>) => void;
}

export function InjectFields({ form, sessions, onChange }: InjectFieldsProps) {
	const live = sessions.filter(({ connected }) => connected);
	const options = live.map((each) => ({
		value: each.session,
		label: `${safeText(sessionName(each))}: ${sessionWords(each).word}`,
	}));
	const isBlocked = live.some((each) => each.session === form.session && each.state === "blocked");
	return (
		<>
			<SelectField
				label="Session"
				value={form.session}
				options={[{ value: "", label: "choose a session" }, ...options]}
				hint={live.length === 0 ? "No other session runs now." : undefined}
				onChange={(session) => onChange({ session, isForced: false })}
			/>
			<p className={css.warning}>Lines that are pasted into a shell run. Look at the turn before you paste it.</p>
			<Checkbox
				label="As one paste, if the program takes it so (bracketed paste)"
				isOn={form.isBracketed}
				onChange={(isBracketed) => onChange({ isBracketed })}
			/>
			<Checkbox
				label={`Also while it shows a dialog, which takes the text as its answer${isBlocked ? ". It shows one now" : ""}`}
				isOn={form.isForced}
				onChange={(isForced) => onChange({ isForced })}
			/>
		</>
	);
}

/** The fields of a form, kept in this window until they are sent, like the text of `useDraft`. */

import { readFormDraft, writeFormDraft } from "../model/form-draft";
import { useDraft } from "./useDraft";

export interface FormDraft<Form> {
	readonly form: Form;
	readonly set: (change: Partial<Form>) => void;
	/** Back to the fields of the thing itself: after a success, or to undo all changes. */
	readonly clear: () => void;
	readonly isChanged: boolean;
}

/** `useFormDraft(`person:${world}/${id}`, fieldsOf(person))`. The key names the form and its object. */
export function useFormDraft<Form extends object>(key: string, initial: Form): FormDraft<Form> {
	const [text, setText, clear] = useDraft(key);
	const form = readFormDraft(initial, text);
	const set = (change: Partial<Form>) => setText(writeFormDraft(initial, { ...form, ...change }));
	return { form, set, clear, isChanged: text !== "" };
}

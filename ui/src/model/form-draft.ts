/**
 * The fields of a form that a person changed, as text that a browser can keep.
 *
 * Only changed fields are kept. The others follow the thing itself, so a form that is opened again does not bring back
 * what somebody else has changed since.
 */

type Fields = Readonly<Record<string, unknown>>;

/** The changed fields as text; empty if nothing was changed. */
export function writeFormDraft<Form extends object>(initial: Form, form: Form): string {
	const before = initial as Fields;
	const changed = Object.entries(form).filter(([name, value]) => !isSame(before[name], value));
	return changed.length === 0 ? "" : JSON.stringify(Object.fromEntries(changed));
}

/**
 * The form with the fields that the text has.
 *
 * An older version of this page may have written the text, so a field of another name or of another type is left out.
 */
export function readFormDraft<Form extends object>(initial: Form, text: string): Form {
	return overlay(initial, parse(text)) as Form;
}

function overlay(initial: unknown, kept: unknown): unknown {
	if (isRecord(initial)) {
		if (!isRecord(kept)) return initial;
		return Object.fromEntries(Object.entries(initial).map(([name, value]) => [name, overlay(value, kept[name])]));
	}
	// A field without a value yet gets a text.
	const wanted = initial === null ? "string" : typeof initial;
	return typeof kept === wanted || (kept === null && initial === null) ? kept : initial;
}

function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return null;
	}
}

function isRecord(value: unknown): value is Fields {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isSame(one: unknown, other: unknown): boolean {
	return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** The arguments of a tool as text that a person can compare. */

/** An escaped newline inside a text of JSON: an odd number of backslashes before an n. */
const NEWLINE = /(?<!\\)((?:\\\\)*)\\n/g;

/** JSON in which a text of many lines, such as the content of a file, has a line of its own for each of them. */
export function argumentText(value: unknown): string {
	return JSON.stringify(value, null, 2).replace(NEWLINE, "$1\\n\n");
}

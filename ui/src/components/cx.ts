/** Joins class names; what is false or missing is left out. */
export function cx(...names: readonly (string | false | null | undefined)[]): string {
	return names.filter(Boolean).join(" ");
}

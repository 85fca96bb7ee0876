/** What a person calls an agent. */

import { firstLine } from "./text-safety";

/** The label, and the alias behind it where that is another word: "Frontend (ui)". */
export function labelWithAlias(label: string, alias: string | null): string {
	const shown = firstLine(label, 60);
	return alias === null || alias.toLowerCase() === shown.toLowerCase() ? shown : `${shown} (${firstLine(alias, 32)})`;
}

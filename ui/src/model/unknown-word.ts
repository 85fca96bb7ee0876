/** Words of a newer server, such as a status that this page does not know yet. */

import { firstLine } from "./text-safety";

const CHARS_MAX = 60;

/**
 * The word as it came, so that a screen can show it instead of failing. For the `default` of a `switch`: the type keeps
 * the compiler's check that every word that this page can know has a case.
 */
export function unknownWord(word: never): string {
	return firstLine(String(word), CHARS_MAX);
}

/** Text on its way out. */

const encoder = new TextEncoder();
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Text as UTF-8. Throws a `TypeError` if it has half a surrogate pair: no UTF-8 says that, and another text would go out. */
export function utf8Of(text: string): Uint8Array {
	if (LONE_SURROGATE.test(text)) {
		throw new TypeError(`half a surrogate pair in ${JSON.stringify(text.slice(0, 80))}: that is no Unicode text`);
	}
	return encoder.encode(text);
}

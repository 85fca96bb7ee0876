/** Ids as the gateway writes them: decimal text, which no JavaScript number can spoil. */

declare const brand: unique symbol;

/** Names a context. Made by {@link contextId}, or received from a server. */
export type ContextId = string & { readonly [brand]: "ContextId" };

/** Names a turn. Made by {@link turnId}, or received from a server. */
export type TurnId = string & { readonly [brand]: "TurnId" };

/** The id that means none. */
export const NONE = "0";

/** A place in the feed of all events, as decimal text; `"0"` is before the first. */
export type Position = string;

const ID_MAX = 2n ** 64n - 1n;

/** Takes a context's id as decimal text, a BigInt or an exact number; throws a `TypeError` for anything else. */
export function contextId(value: string | bigint | number): ContextId {
	return id(value) as ContextId;
}

/** Takes a turn's id as decimal text, a BigInt or an exact number; throws a `TypeError` for anything else. */
export function turnId(value: string | bigint | number): TurnId {
	return id(value) as TurnId;
}

function id(value: string | bigint | number): string {
	const text = String(value);
	const isExact = typeof value !== "number" || Number.isSafeInteger(value);
	if (!isExact || !/^[1-9][0-9]{0,19}$/.test(text) || BigInt(text) > ID_MAX) {
		throw new TypeError(`not an id: ${text.slice(0, 80)}`);
	}
	return text;
}

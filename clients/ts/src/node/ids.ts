/** Ids as 64-bit numbers: BigInt, because a JavaScript number is exact only up to 2^53. */

declare const brand: unique symbol;

/** Names a context. Made by {@link contextId}, or received from a server. */
export type ContextId = bigint & { readonly [brand]: "ContextId" };

/** Names a turn. Made by {@link turnId}, or received from a server. */
export type TurnId = bigint & { readonly [brand]: "TurnId" };

/** A place in the feed of all events; 0 is before the first. */
export type Position = bigint;

const ID_MAX = 2n ** 64n - 1n;

/** Takes a context's id as a BigInt, an exact number or decimal text; throws a `TypeError` for anything else. */
export function contextId(value: bigint | number | string): ContextId {
	return id(value) as ContextId;
}

/** Takes a turn's id as a BigInt, an exact number or decimal text; throws a `TypeError` for anything else. */
export function turnId(value: bigint | number | string): TurnId {
	return id(value) as TurnId;
}

function id(value: bigint | number | string): bigint {
	const isExact =
		typeof value === "bigint" ||
		(typeof value === "number" ? Number.isSafeInteger(value) : /^[1-9][0-9]{0,19}$/.test(value));
	const parsed = isExact ? BigInt(value) : 0n;
	if (parsed < 1n || parsed > ID_MAX) throw new TypeError(`not an id: ${String(value).slice(0, 80)}`);
	return parsed;
}

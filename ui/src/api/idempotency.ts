/** Idempotency keys: the same key with the same body is carried out once, however often it is sent. */

import { useCallback, useState } from "react";

/** A new key. Not `randomUUID`, which a page that came over plain HTTP from another host does not have. */
export function newIdempotencyKey(): string {
	const bytes = crypto.getRandomValues(new Uint8Array(16));
	return `ui-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** The header of a POST. */
export function idempotent(key: string): { "Idempotency-Key": string } {
	return { "Idempotency-Key": key };
}

export interface FormKey {
	readonly key: string;
	/** Makes a new key: after a success, and when the text was changed after a failure that the server answered. */
	readonly renew: () => void;
}

/** A key that is made when the form opens. A double click or a retry sends the same one. */
export function useFormKey(): FormKey {
	const [key, setKey] = useState(newIdempotencyKey);
	const renew = useCallback(() => setKey(newIdempotencyKey()), []);
	return { key, renew };
}

/** Idempotency keys: the same key with the same body is carried out once, however often it is sent. */

import { useCallback, useState } from "react";
import { ApiError } from "./errors";

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
	/** Makes a new key, for `onSuccess`. */
	readonly renew: () => void;
	/** For `onError`: makes a new key only if the server refused. Whatever may have been carried out keeps its key. */
	readonly renewIfRefused: (error: Error) => void;
}

/** Whether the server said that it did nothing. No answer, a 5xx and "in progress" leave the outcome open. */
function isRefusal(error: Error): boolean {
	return error instanceof ApiError && error.status < 500 && error.code !== "IN_PROGRESS";
}

/** A key that is made when the form opens. A double click or a retry sends the same one. */
export function useFormKey(): FormKey {
	const [key, setKey] = useState(newIdempotencyKey);
	const renew = useCallback(() => setKey(newIdempotencyKey()), []);
	const renewIfRefused = useCallback((error: Error) => {
		if (isRefusal(error)) setKey(newIdempotencyKey());
	}, []);
	return { key, renew, renewIfRefused };
}

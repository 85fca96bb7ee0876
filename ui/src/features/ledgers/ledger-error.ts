/** Errors of a ledger in the words of the screen: the API calls a ledger a world. */

import { ApiError } from "../../api/errors";

/** The same error; names in backquotes stay as they are. */
export function ledgerError<E>(error: E): E | ApiError {
	if (!(error instanceof ApiError)) return error;
	const message = error.message
		.split(/(`[^`]*`)/)
		.map((part) => (part.startsWith("`") ? part : inScreenWords(part)))
		.join("");
	return new ApiError(error.status, error.code, message, error.details);
}

function inScreenWords(text: string): string {
	return text
		.replace(/\bdeclared_overrides\.time\.declared_world_time\b/g, "the time")
		.replace(/\bworld_id\b/g, "the name")
		.replace(/\bperson_id\b/g, "the id")
		.replace(/\bworld('s|s)?\b/g, "ledger$1");
}

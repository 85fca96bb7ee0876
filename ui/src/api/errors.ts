/** What can go wrong with a request, and how it is said. */

/** The server answered with an error. */
export class ApiError extends Error {
	override readonly name = "ApiError";

	constructor(
		readonly status: number,
		/** The word that programs compare, such as `NotFound`. */
		readonly code: string,
		message: string,
		readonly details: Readonly<Record<string, unknown>> = {},
	) {
		super(message);
	}
}

/** No answer came. A write may have been carried out all the same. */
export class NoAnswerError extends Error {
	override readonly name = "NoAnswerError";

	constructor(
		readonly isWrite: boolean,
		options?: ErrorOptions,
	) {
		super("the server did not answer", options);
	}
}

/** An error as people read it: what happened, what to do, and the code to copy. */
export interface ErrorWords {
	readonly what: string;
	readonly hint: string | null;
	readonly code: string | null;
}

export function errorWords(error: unknown): ErrorWords {
	if (error instanceof ApiError) {
		return { what: sentence(error.message), hint: hintOf(error), code: `${error.status} ${error.code}` };
	}
	if (error instanceof NoAnswerError) {
		const hint = error.isWrite
			? "It is not known whether it was carried out. Trying again is safe: the server does it once."
			: "The page tries again by itself.";
		return { what: "The server did not answer.", hint, code: null };
	}
	const message = error instanceof Error ? error.message : String(error);
	return { what: sentence(message), hint: null, code: error instanceof Error ? error.name : null };
}

function sentence(text: string): string {
	// Only a plain word: a path or a name at the beginning is spelled as it is.
	const begun = /^[a-z]+[\s,:]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
	return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

function hintOf(error: ApiError): string | null {
	switch (error.status) {
		case 401:
			return "Open the link that `turnkeep up` printed.";
		case 404:
			return "It may have been deleted.";
		case 429:
			return "Too many requests in a short time: wait a little.";
		case 503:
			return "The server cannot do this right now. System → Health says why.";
		default:
			return null;
	}
}

export function isNotFound(error: unknown): boolean {
	return error instanceof ApiError && error.status === 404;
}

/** Reads the body of an answer that is no success. */
export function apiErrorOf(status: number, body: unknown): ApiError {
	const error = field(body, "error");
	const code = field(error, "code");
	const message = field(error, "message");
	const details = field(error, "details");
	return new ApiError(
		status,
		typeof code === "string" ? code : "Unknown",
		typeof message === "string" ? message : `the server answered with status ${status}`,
		typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {},
	);
}

function field(value: unknown, name: string): unknown {
	return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/**
 * What can go wrong for a caller, and whether asking again can help.
 *
 * Every error that this package throws on purpose is a {@link TurnkeepError}; the only others are the
 * reason of a caller's own AbortSignal and the `TypeError` of an argument that no server was asked about.
 */

/** The base of every error of this package. */
export class TurnkeepError extends Error {
	override readonly name: string = "TurnkeepError";

	/** Whether the same request may succeed later, and sending it again cannot carry it out twice. */
	get isRetryable(): boolean {
		return false;
	}
}

/** Whether asking again, exactly as before, is safe and may help. */
export function isRetryable(error: unknown): boolean {
	return error instanceof TurnkeepError && error.isRetryable;
}

/** The words by which the server names its errors. A server may be newer than this list. */
export type ErrorCode =
	| "BadRequest"
	| "Unauthorized"
	| "Forbidden"
	| "NotFound"
	| "Conflict"
	| "PreconditionFailed"
	| "TooLarge"
	| "MissingTypeHint"
	| "Unprocessable"
	| "DecodeError"
	| "FailedDependency"
	| "TooManyRequests"
	| "Internal"
	| "Unavailable"
	| "InsufficientStorage"
	| (string & {});

const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([429, 503, 507]);

/** The server refused the request; the same over the binary protocol and over HTTP. */
export class ServerError extends TurnkeepError {
	override readonly name = "ServerError";

	constructor(
		/** The number, which is the HTTP status. */
		readonly status: number,
		/** The canonical word. */
		readonly code: ErrorCode,
		message: string,
		/** Values that belong to the error, such as the actual head of a conflict. */
		readonly details: Readonly<Record<string, unknown>> = {},
	) {
		super(message);
	}

	override get isRetryable(): boolean {
		return RETRYABLE_STATUSES.has(this.status);
	}
}

/** No connection could be made. */
export class ConnectError extends TurnkeepError {
	override readonly name = "ConnectError";

	override get isRetryable(): boolean {
		return true;
	}
}

/** How a connection ended. */
export type LostReason = "closed" | "ended" | "io" | "silent" | "frame_too_long" | "refused";

/** The connection ended before the answer came, and the request is safe to repeat. */
export class LostError extends TurnkeepError {
	override readonly name = "LostError";

	constructor(
		/** How it ended; `closed` means that this client was closed. */
		readonly reason: LostReason,
		message: string,
		options?: ErrorOptions,
	) {
		super(`the connection was lost: ${message}`, options);
	}

	override get isRetryable(): boolean {
		return this.reason !== "closed";
	}
}

/** A write without an idempotency key was sent, and its outcome is unknown. */
export class OutcomeUnknownError extends TurnkeepError {
	override readonly name = "OutcomeUnknownError";

	constructor(cause: TurnkeepError) {
		super(
			`${cause.message}; the request had been sent and may or may not have been carried out: an idempotency key makes it safe to repeat`,
			{ cause },
		);
	}
}

/** What is wrong with bytes that should be a message. */
export type ProtocolFault =
	| "unknown_type"
	| "undefined_flags"
	| "truncated"
	| "left_over"
	| "bad_value"
	| "not_utf8"
	| "zero_id"
	| "too_many"
	| "frame_too_long"
	| "wrong_answer";

/** The server's answer is not what the protocol says. */
export class ProtocolError extends TurnkeepError {
	override readonly name = "ProtocolError";

	constructor(
		/** The kind of fault. */
		readonly fault: ProtocolFault,
		message: string,
		options?: ErrorOptions,
	) {
		super(message, options);
	}
}

/** The bytes that came are not the bytes that were asked for. */
export class HashMismatchError extends TurnkeepError {
	override readonly name = "HashMismatchError";

	constructor(
		/** The hash that was asked for. */
		readonly expected: string,
		/** The hash of the received bytes. */
		readonly actual: string,
	) {
		super(`the bytes received hash to ${actual}, not to ${expected}`);
	}
}

/** What is wrong with a payload. */
export type PayloadFault =
	| "empty"
	| "not_a_map"
	| "not_a_tree"
	| "truncated"
	| "reserved"
	| "trailing"
	| "too_deep"
	| "compression"
	| "unpublished"
	| "wrong_value";

/** A payload that does not decompress, is no msgpack map, or cannot be what its type says. */
export class PayloadError extends TurnkeepError {
	override readonly name = "PayloadError";

	constructor(
		/** The kind of fault. */
		readonly fault: PayloadFault,
		message: string,
		options?: ErrorOptions,
	) {
		super(message, options);
	}
}

/** A request over a limit of this client; it was not sent. */
export class TooLargeError extends TurnkeepError {
	override readonly name = "TooLargeError";

	constructor(
		/** The size of the request. */
		readonly bytes: number,
		/** The limit. */
		readonly max: number,
	) {
		super(`a request of ${bytes} bytes is over the limit of ${max}`);
	}
}

/** How a client connects, waits and tries again. Every wait and every queue has a bound here. */

import { DEFAULT_RETRY, type RetryPolicy } from "../core/backoff.js";
import { timeLimit } from "../core/time-limit.js";

const MIB = 1 << 20;

/** How to reach a server. What is left out suits a server on the same machine. */
export interface ClientOptions {
	/** The server's token; none only for a server that runs with `--no-auth`. */
	readonly token?: string;
	/** Speaks TLS when set. */
	readonly tls?: TlsOptions;
	/** A short name by which the server's log knows this client. */
	readonly tag?: string;
	/** For a connection, its TLS handshake and the answer to HELLO together; `Infinity` for no time-out. */
	readonly connectTimeoutMs?: number;
	/** For the next byte, in either direction, while requests are unanswered; `Infinity` for no time-out. */
	readonly answerTimeoutMs?: number;
	/** What to do when the connection is lost or the server says "later". */
	readonly retry?: RetryPolicy;
	/** Requests that may be unanswered at once; one more waits. */
	readonly inFlightMax?: number;
	/** Bytes of unanswered requests at once; a request that would exceed them waits. */
	readonly inFlightBytesMax?: number;
	/** The longest request. A longer one is refused here: sent, it would end the connection for everybody. */
	readonly requestBytesMax?: number;
	/** The longest frame that is accepted from the server. */
	readonly frameBytesMax?: number;
	/** Checks every payload and blob that is read against its hash. */
	readonly verifyReads?: boolean;
	/** Events that a subscription holds for a reader that is busy. Beyond them it resumes by itself. */
	readonly subscriptionEventsMax?: number;
	/** Bytes of such events. A larger event is held alone. */
	readonly subscriptionBytesMax?: number;
}

/** Whom to trust when speaking TLS. */
export interface TlsOptions {
	/** PEM text of the certificates that may sign the server's; the system's if left out. */
	readonly ca?: string;
	/** The name that the server's certificate must have; the host of the address if left out. */
	readonly serverName?: string;
}

/** Options with everything decided. */
export type ResolvedOptions = Required<Omit<ClientOptions, "token" | "tls">> & Pick<ClientOptions, "token" | "tls">;

/** Fills in the defaults of missing options. Throws a `TypeError` for a time-out that is not a duration. */
export function resolveOptions(options: ClientOptions): ResolvedOptions {
	const defaults = {
		tag: "turnkeep-ts",
		connectTimeoutMs: 5_000,
		answerTimeoutMs: 30_000,
		retry: DEFAULT_RETRY,
		inFlightMax: 4096,
		inFlightBytesMax: 128 * MIB,
		requestBytesMax: 64 * MIB,
		frameBytesMax: 128 * MIB,
		verifyReads: false,
		subscriptionEventsMax: 1024,
		subscriptionBytesMax: 64 * MIB,
	};
	const given = Object.entries(options).filter(([, value]) => value !== undefined);
	const resolved: ResolvedOptions = { ...defaults, ...Object.fromEntries(given) };
	return {
		...resolved,
		connectTimeoutMs: timeLimit("connectTimeoutMs", resolved.connectTimeoutMs),
		answerTimeoutMs: timeLimit("answerTimeoutMs", resolved.answerTimeoutMs),
	};
}

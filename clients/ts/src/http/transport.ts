/**
 * One HTTP request from its making to its answer: address, token, time-outs, tries, errors.
 *
 * Invariants: an answer that is no success is thrown as a `TurnkeepError`; when a request is settled neither timer
 * nor abort listener is left; a write without an idempotency key is never sent twice. Answers are read up to a bound.
 */

import { Backoff, DEFAULT_RETRY, type RetryPolicy } from "../core/backoff.js";
import {
	ConnectError,
	isRetryable,
	LostError,
	OutcomeUnknownError,
	ProtocolError,
	ServerError,
	TurnkeepError,
} from "../core/errors.js";
import { timeLimit } from "../core/time-limit.js";
import { readBytes } from "./body.js";

const ERROR_BYTES_MAX = 1 << 20;

/** How to reach a gateway. */
export interface GatewayOptions {
	/** The server's address, such as `http://127.0.0.1:9010`; in a page that the server gave, `location.origin`. */
	readonly baseUrl: string;
	/** The server's token; none with `--no-auth`, or in a page whose cookie the server knows. */
	readonly token?: string;
	/** Used instead of the global `fetch`. */
	readonly fetch?: typeof fetch;
	/** For a whole answer; a stream's is for its next byte. `Infinity` for no time-out. */
	readonly timeoutMs?: number;
	/** What to do when an answer is lost or the server says "later". */
	readonly retry?: RetryPolicy;
	/** The longest answer that is read. */
	readonly answerBytesMax?: number;
}

/** A request. */
export interface HttpRequest {
	readonly method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH";
	readonly path: string;
	readonly query?: object | undefined;
	readonly headers?: Readonly<Record<string, string>>;
	readonly body?: string | Uint8Array;
	/** Whether a request with an unknown outcome may be sent again. */
	readonly repeat?: "safe" | "unsafe";
	readonly signal?: AbortSignal | undefined;
	/** A status that is an answer although it is no success. */
	readonly alsoFine?: number;
}

/** An answer with its whole body. */
export interface HttpAnswer {
	readonly status: number;
	readonly headers: Headers;
	readonly body: Uint8Array;
}

export class Transport {
	readonly #fetch: typeof fetch;
	readonly #base: string;
	readonly timeoutMs: number;
	readonly retry: RetryPolicy;
	readonly answerBytesMax: number;

	constructor(private readonly options: GatewayOptions) {
		// Throws here, and not in the middle of a retry, if it is no address.
		this.#base = new URL(options.baseUrl).href.replace(/\/+$/, "");
		// A bare `fetch` must be called on nothing but the global object.
		this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
		this.timeoutMs = timeLimit("timeoutMs", options.timeoutMs ?? 30_000);
		this.retry = options.retry ?? DEFAULT_RETRY;
		this.answerBytesMax = options.answerBytesMax ?? 128 << 20;
	}

	/** Asks, again and again while that is safe and may help. */
	async ask(request: HttpRequest): Promise<HttpAnswer> {
		const backoff = new Backoff(this.retry);
		for (;;) {
			try {
				return await this.#once(request);
			} catch (error) {
				const explained = explain(error, request.repeat ?? "safe");
				if (!isRetryable(explained) || !(await backoff.pause(request.signal))) throw explained;
			}
		}
	}

	/** Asks once and hands over the response before its body is read. The caller's signal ends the body too. */
	async open(request: HttpRequest, signal: AbortSignal): Promise<Response> {
		const response = await this.#send(request, signal);
		if (!response.ok && response.status !== request.alsoFine) throw await readError(response);
		return response;
	}

	async #once(request: HttpRequest): Promise<HttpAnswer> {
		request.signal?.throwIfAborted();
		const controller = new AbortController();
		const stop = () => controller.abort(request.signal?.reason);
		const late = new LostError("silent", `no answer for ${this.timeoutMs} ms`);
		const timer = setTimeout(() => controller.abort(late), this.timeoutMs);
		request.signal?.addEventListener("abort", stop, { once: true });
		try {
			const response = await this.open(request, controller.signal);
			const body = await readBytes(response, this.answerBytesMax);
			return { status: response.status, headers: response.headers, body };
		} catch (error) {
			throw controller.signal.aborted ? controller.signal.reason : lossOf(error);
		} finally {
			clearTimeout(timer);
			request.signal?.removeEventListener("abort", stop);
		}
	}

	#send(request: HttpRequest, signal: AbortSignal): Promise<Response> {
		const headers = new Headers(request.headers);
		if (this.options.token !== undefined) headers.set("authorization", `Bearer ${this.options.token}`);
		return this.#fetch(urlOf(this.#base, request), {
			method: request.method ?? "GET",
			headers,
			signal,
			...(request.body === undefined ? {} : { body: request.body as BodyInit }),
		});
	}
}

function urlOf(base: string, { path, query }: HttpRequest): URL {
	const url = new URL(base + path);
	for (const [name, value] of Object.entries(query ?? {})) {
		const values: unknown[] = Array.isArray(value) ? value : [value];
		for (const each of values) if (each !== undefined) url.searchParams.append(name, String(each));
	}
	return url;
}

/** An answer's JSON, which is always an object; it is taken to have the shape that the OpenAPI document promises. */
export function jsonOf<T>(answer: Pick<HttpAnswer, "body">): T {
	const value = parse(answer.body);
	if (typeof value === "object" && value !== null) return value as T;
	throw new ProtocolError("bad_value", "the server's answer is not a JSON object");
}

function parse(body: Uint8Array): unknown {
	try {
		return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
	} catch (cause) {
		throw new ProtocolError("bad_value", "the server's answer is not JSON", { cause });
	}
}

async function readError(response: Response): Promise<ServerError> {
	const { status } = response;
	try {
		const { error } = jsonOf<{ error?: { code?: unknown; message?: unknown; details?: unknown } }>({
			body: await readBytes(response, ERROR_BYTES_MAX),
		});
		if (typeof error?.code === "string" && typeof error.message === "string") {
			const details = typeof error.details === "object" ? (error.details as Record<string, unknown>) : {};
			return new ServerError(status, error.code, error.message, details ?? {});
		}
	} catch (error) {
		if (!(error instanceof ProtocolError)) throw error;
	}
	return new ServerError(status, "Unknown", response.statusText || `status ${status}`);
}

/** What a failed `fetch` means: whatever is not ours says, in its platform's words, that the answer was lost. */
export function lossOf(error: unknown): TurnkeepError {
	if (error instanceof TurnkeepError) return error;
	const { message, cause } = error as { message?: string; cause?: { code?: string; message?: string } };
	const said = cause?.message || cause?.code || message || "the request failed";
	if (cause?.code === "ECONNREFUSED") return new ConnectError(`cannot connect: ${said}`, { cause: error });
	return new LostError("io", said, { cause: error });
}

function explain(error: unknown, repeat: "safe" | "unsafe"): unknown {
	const isUnknown = error instanceof LostError || (error instanceof ServerError && error.status === 503);
	return isUnknown && repeat === "unsafe" ? new OutcomeUnknownError(error as TurnkeepError) : error;
}

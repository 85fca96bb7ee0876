/**
 * Requests to the server: same origin, cookie, typed by `openapi.json`.
 *
 * `answer(api.GET(…))` is the data or throws an `ApiError` or a `NoAnswerError`. Any 401 signs the window out.
 */

import type { paths } from "@turnkeep/client/http/openapi";
import createClient from "openapi-fetch";
import { setConnection } from "./connection";
import { apiErrorOf, NoAnswerError } from "./errors";

/** Long enough for a verification or an export to begin; a request without an end would look like a frozen page. */
const ANSWER_MS_MAX = 120_000;

/** `fetch` with the rules of this file. */
export async function send(input: Request): Promise<Response> {
	const isWrite = input.method !== "GET" && input.method !== "HEAD";
	const signal = AbortSignal.any([input.signal, AbortSignal.timeout(ANSWER_MS_MAX)]);
	let response: Response;
	try {
		response = await fetch(input, { signal });
	} catch (cause) {
		if (input.signal.aborted) throw cause;
		throw new NoAnswerError(isWrite, { cause });
	}
	if (response.status === 401) setConnection({ state: "signed-out" });
	return response;
}

/** The typed client: `api.GET("/api/runs/{run_id}", { params: { path: { run_id } } })`. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });

interface Settled<T> {
	readonly data?: T;
	readonly error?: unknown;
	readonly response: Response;
}

/** The data of an answer. Anything but a success is thrown. */
export async function answer<T>(request: Promise<Settled<T>>): Promise<T> {
	const { data, error, response } = await request;
	if (!response.ok) throw apiErrorOf(response.status, error);
	return data as T;
}

/** A request that `openapi.json` does not describe, or whose body is no JSON. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
	const response = await send(new Request(new URL(path, location.origin), init));
	if (response.ok) return response;
	const body: unknown = await response.json().catch(() => null);
	throw apiErrorOf(response.status, body);
}

/** Like `request`, for JSON both ways. */
export async function requestJson<T>(
	path: string,
	init: Omit<RequestInit, "body"> & { readonly body?: unknown } = {},
): Promise<T> {
	const { body, ...rest } = init;
	const headers = new Headers(rest.headers);
	if (body !== undefined) headers.set("content-type", "application/json");
	const sent = body === undefined ? {} : { body: JSON.stringify(body) };
	const response = await request(path, { ...rest, ...sent, headers });
	return (await response.json()) as T;
}

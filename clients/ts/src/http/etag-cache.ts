/**
 * Answers that are asked for again and again and rarely change, by path, with their ETags.
 *
 * The server decides: every question is asked, and a 304 gives the answer that is here. Bounded; the answer that was
 * used longest ago goes first.
 */

import { type HttpRequest, jsonOf, type Transport } from "./transport.js";

const ANSWERS_MAX = 256;

export class EtagCache {
	readonly #answers = new Map<string, { readonly etag: string; readonly value: unknown }>();

	constructor(private readonly transport: Transport) {}

	/** The JSON at a path. */
	async get<T>(request: HttpRequest): Promise<T> {
		const known = this.#answers.get(request.path);
		const headers = known === undefined ? {} : { "if-none-match": known.etag };
		const answer = await this.transport.ask({ ...request, headers, alsoFine: 304 });
		if (answer.status === 304 && known !== undefined) {
			this.#keep(request.path, known);
			return known.value as T;
		}
		const value = jsonOf<T>(answer);
		const etag = answer.headers.get("etag");
		if (etag !== null) this.#keep(request.path, { etag, value });
		return value;
	}

	#keep(path: string, answer: { readonly etag: string; readonly value: unknown }): void {
		// A Map keeps the order in which keys were added. Adding the key anew puts it behind all others.
		this.#answers.delete(path);
		this.#answers.set(path, answer);
		const oldest = this.#answers.keys().next();
		if (this.#answers.size > ANSWERS_MAX && !oldest.done) this.#answers.delete(oldest.value);
	}
}

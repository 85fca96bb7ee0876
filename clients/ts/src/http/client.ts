/**
 * The client of the HTTP gateway, for servers and browsers: typed JSON by the gateway's own names.
 *
 * Reads and writes that are idempotent by their content or by a key are repeated when an answer is lost; other writes
 * give an `OutcomeUnknownError`. Every method takes an AbortSignal; a request that was sent may still be carried out.
 */

import { type BlobHash, hashOf, verifyHash } from "../core/blob-hash.js";
import type { Bundle } from "../core/bundle.js";
import { ProtocolError, ServerError } from "../core/errors.js";
import { EtagCache } from "./etag-cache.js";
import { type EventOptions, storeEvents } from "./events.js";
import type { ContextId, TurnId } from "./ids.js";
import type {
	AppendTurn,
	BlobPut,
	Context,
	ContextListOptions,
	ContextPage,
	CreateContext,
	ForkContext,
	FsListing,
	FsNode,
	Health,
	Stats,
	StoreEvent,
	Turn,
	TurnAck,
	TurnPage,
	TurnPageOptions,
	TypeDescriptor,
	TypeList,
	ViewOptions,
	Why,
} from "./resources.js";
import { type GatewayOptions, type HttpRequest, jsonOf, Transport } from "./transport.js";

const JSON_TYPE = { "content-type": "application/json" };
const BYTES_TYPE = { "content-type": "application/octet-stream" };

/** What every method takes. */
export interface GatewayCallOptions {
	/** Gives up waiting. */
	readonly signal?: AbortSignal;
}

/** A part of something's bytes: from `start` to before `end`. */
export interface ByteRange {
	readonly start: number;
	readonly end?: number;
}

/** An append's ack, and whether the key had been used for it before. */
export type AppendResult = TurnAck & { readonly replayed: boolean };

/** A client of one gateway. It holds no connection: there is nothing to close. */
export class GatewayClient {
	readonly #transport: Transport;
	readonly #descriptors: EtagCache;

	constructor(options: GatewayOptions) {
		this.#transport = new Transport(options);
		this.#descriptors = new EtagCache(this.#transport);
	}

	/** Creates a context. With a key it is repeated safely. */
	createContext(create: CreateContext = {}, options?: GatewayCallOptions): Promise<Context> {
		return this.#post("/v1/contexts", create, options);
	}

	/** Forks a context from a turn. With a key it is repeated safely. */
	forkContext(fork: ForkContext, options?: GatewayCallOptions): Promise<Context> {
		return this.#post("/v1/contexts/fork", fork, options);
	}

	/** A context: its head and its labels. */
	context(contextId: ContextId, options?: GatewayCallOptions): Promise<Context> {
		return this.#get(`/v1/contexts/${contextId}`, options);
	}

	/** Replaces a context's labels. */
	async setLabels(
		contextId: ContextId,
		labels: Readonly<Record<string, string>>,
		options?: GatewayCallOptions,
	): Promise<Context> {
		const body = JSON.stringify({ labels });
		const path = `/v1/contexts/${contextId}`;
		return jsonOf(await this.#transport.ask({ method: "PATCH", path, body, headers: JSON_TYPE, ...options }));
	}

	/** One page of contexts, newest created first. */
	contexts({ signal, ...query }: ContextListOptions & GatewayCallOptions = {}): Promise<ContextPage> {
		return this.#get("/v1/contexts", { signal, query });
	}

	/** All contexts, newest created first, fetched a page at a time. Pages that lead in a circle are a `ProtocolError`. */
	async *allContexts(
		options: Omit<ContextListOptions, "cursor"> & GatewayCallOptions = {},
	): AsyncGenerator<Context, void, void> {
		const cursors = new Set<string>();
		let page = await this.contexts(options);
		for (;;) {
			yield* page.contexts;
			const cursor = page.next_cursor;
			if (cursor === null) return;
			if (cursors.has(cursor)) throw new ProtocolError("bad_value", `the cursor ${cursor} comes twice`);
			cursors.add(cursor);
			page = await this.contexts({ ...options, cursor });
		}
	}

	/** Appends a turn and waits until it is durable. With a key it is repeated safely. */
	async append(contextId: ContextId, turn: AppendTurn, options?: GatewayCallOptions): Promise<AppendResult> {
		const answer = await this.#transport.ask({
			...postRequest(`/v1/contexts/${contextId}/turns`, turn),
			signal: options?.signal,
		});
		return { ...jsonOf<TurnAck>(answer), replayed: answer.headers.get("idempotency-replayed") === "true" };
	}

	/** One page of a context's turns, oldest first. */
	turns(contextId: ContextId, { signal, ...query }: TurnPageOptions & GatewayCallOptions = {}): Promise<TurnPage> {
		return this.#get(`/v1/contexts/${contextId}/turns`, { signal, query });
	}

	/** All turns of a context from its head back to its root, newest first, fetched a page at a time. */
	async *history(
		contextId: ContextId,
		options: TurnPageOptions & GatewayCallOptions = {},
	): AsyncGenerator<Turn, void, void> {
		let page = await this.turns(contextId, options);
		for (;;) {
			yield* page.turns.toReversed();
			const before = page.next_before_turn_id;
			if (before === null) return;
			page = await this.turns(contextId, { ...options, before_turn_id: before });
			const next = page.next_before_turn_id;
			if (next !== null && !isOlder(next, before)) {
				throw new ProtocolError("bad_value", `turn ${next} is no ancestor of turn ${before}`);
			}
		}
	}

	/** One turn. What keeps it from being shown is thrown. */
	turn(turnId: TurnId, { signal, ...query }: ViewOptions & GatewayCallOptions = {}): Promise<Turn> {
		return this.#get(`/v1/turns/${turnId}`, { signal, query });
	}

	/** A blob's bytes, all or a part; all of them are checked against the hash when `verify` is set. */
	async blob(
		hash: BlobHash,
		options: { readonly range?: ByteRange; readonly verify?: boolean } & GatewayCallOptions = {},
	): Promise<Uint8Array> {
		const { range, verify = false, signal } = options;
		const { body } = await this.#transport.ask({ path: `/v1/blobs/${hash}`, headers: rangeHeader(range), signal });
		if (verify && range === undefined) verifyHash(hash, body);
		return body;
	}

	/** Whether the store has a blob. */
	async hasBlob(hash: BlobHash, options?: GatewayCallOptions): Promise<boolean> {
		try {
			await this.#transport.ask({ method: "HEAD", path: `/v1/blobs/${hash}`, ...options });
			return true;
		} catch (error) {
			if (error instanceof ServerError && error.status === 404) return false;
			throw error;
		}
	}

	/** Keeps a blob. */
	async putBlob(bytes: Uint8Array, options?: GatewayCallOptions): Promise<BlobPut> {
		const path = `/v1/blobs/${hashOf(bytes)}`;
		return jsonOf(await this.#transport.ask({ method: "PUT", path, body: bytes, headers: BYTES_TYPE, ...options }));
	}

	/** The root directory of a turn's filesystem. */
	fsRoot(turnId: TurnId, options?: GatewayCallOptions): Promise<FsListing> {
		return this.#get(`/v1/turns/${turnId}/fs`, options);
	}

	/** What a path of a turn's filesystem leads to: a directory, a symbolic link, or a file's bytes. */
	async fs(turnId: TurnId, path: string, options?: GatewayCallOptions): Promise<FsNode | Uint8Array> {
		const encoded = path.split("/").map(encodeURIComponent).join("/");
		const answer = await this.#transport.ask({ path: `/v1/turns/${turnId}/fs/${encoded}`, ...options });
		const isJson = answer.headers.get("content-type")?.startsWith("application/json") ?? false;
		return isJson ? jsonOf<FsNode>(answer) : answer.body;
	}

	/** Publishes a registry bundle. Returns whether it was new. */
	async putBundle(bundle: Bundle, options?: GatewayCallOptions): Promise<boolean> {
		const request = { method: "PUT", path: bundlePath(bundle.bundle_id), headers: JSON_TYPE } as const;
		const answer = await this.#transport.ask({ ...request, body: JSON.stringify(bundle), ...options });
		if (answer.status !== 201 && answer.status !== 204) {
			throw new ProtocolError("wrong_answer", `the server answered a bundle with status ${answer.status}`);
		}
		return answer.status === 201;
	}

	/** A bundle as it was published. */
	bundle(bundleId: string, options?: GatewayCallOptions): Promise<Bundle> {
		return this.#descriptors.get({ path: bundlePath(bundleId), ...options });
	}

	/** Every known type. */
	types(options?: GatewayCallOptions): Promise<TypeList> {
		return this.#descriptors.get({ path: "/v1/registry/types", ...options });
	}

	/** A type at one version. It is kept, and the server is asked only whether it changed. */
	typeDescriptor(typeId: string, typeVersion: number, options?: GatewayCallOptions): Promise<TypeDescriptor> {
		const path = `/v1/registry/types/${encodeURIComponent(typeId)}/versions/${typeVersion}`;
		return this.#descriptors.get({ path, ...options });
	}

	/** Follows the store's events, and resumes after every loss. */
	events(options: EventOptions = {}): AsyncGenerator<StoreEvent, void, void> {
		return storeEvents(this.#transport, options);
	}

	/** Why something is there. `ref` is such as `turn:7`, `artifact://ID` or `artifact://ID#src/lib.rs:3`. */
	why(ref: string, options?: GatewayCallOptions): Promise<Why> {
		return this.#get(`/v1/refs/${encodeURIComponent(ref)}/why`, options);
	}

	/** Counters of the store and of the server. */
	stats(options?: GatewayCallOptions): Promise<Stats> {
		return this.#get("/v1/stats", options);
	}

	/** Whether the server can do its work, or only read; needs no token. */
	async health(options?: GatewayCallOptions): Promise<Health> {
		return jsonOf(await this.#transport.ask({ path: "/healthz", alsoFine: 503, ...options }));
	}

	/** The server's metrics in the OpenMetrics text format. */
	async metrics(options?: GatewayCallOptions): Promise<string> {
		return new TextDecoder().decode((await this.#transport.ask({ path: "/metrics", ...options })).body);
	}

	/** The server's own description of this interface. */
	openapi(options?: GatewayCallOptions): Promise<Readonly<Record<string, unknown>>> {
		return this.#get("/openapi.json", options);
	}

	/** The whole store as a stream, of any length. It has no time-out of its own: give it a signal. */
	async export(options?: GatewayCallOptions): Promise<ReadableStream<Uint8Array>> {
		const signal = options?.signal ?? new AbortController().signal;
		const { body } = await this.#transport.open({ path: "/v1/export" }, signal);
		return body ?? new ReadableStream({ start: (controller) => controller.close() });
	}

	async #get<T>(path: string, options: Pick<HttpRequest, "query" | "signal"> = {}): Promise<T> {
		return jsonOf<T>(await this.#transport.ask({ path, ...options }));
	}

	async #post<T>(path: string, body: Keyed, options: GatewayCallOptions = {}): Promise<T> {
		return jsonOf<T>(await this.#transport.ask({ ...postRequest(path, body), ...options }));
	}
}

type Keyed = { readonly idempotency_key?: string | null };

function postRequest(path: string, body: Keyed): HttpRequest {
	const repeat = body.idempotency_key ? "safe" : "unsafe";
	return { method: "POST", path, body: JSON.stringify(body), headers: JSON_TYPE, repeat };
}

/** Whether a turn was appended before another: ids are decimal text, and grow. */
function isOlder(one: TurnId, other: TurnId): boolean {
	return one.length < other.length || (one.length === other.length && one < other);
}

function bundlePath(bundleId: string): string {
	return `/v1/registry/bundles/${encodeURIComponent(bundleId)}`;
}

function rangeHeader(range: ByteRange | undefined): Record<string, string> {
	if (range === undefined) return {};
	return { range: `bytes=${range.start}-${range.end === undefined ? "" : range.end - 1}` };
}

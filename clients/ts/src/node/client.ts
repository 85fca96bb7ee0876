/**
 * The client of the binary protocol: every verb, many callers on one connection, safe repetition.
 *
 * A request that is lost is repeated only where repeating cannot do harm: reads, writes that are idempotent by
 * their content, and writes with an idempotency key. For the others the caller gets an `OutcomeUnknownError`.
 * Requests leave in the order in which they were made; those that had to be repeated may change places.
 */

import { type BlobHash, hashOf, verifyHash } from "../core/blob-hash.js";
import { LostError, ProtocolError, TooLargeError } from "../core/errors.js";
import { decodeTree, type TreeEntry } from "../core/fs-tree.js";
import type { IdempotencyKey } from "../wire/requests.js";
import * as requests from "../wire/requests.js";
import type { ResponseCodec } from "../wire/responses.js";
import * as responses from "../wire/responses.js";
import { MSGPACK, type NewContent, type Turn, type TypeRef } from "../wire/turns.js";
import { call, type Question, type Repeat } from "./call.js";
import type { Connection } from "./connection.js";
import { type Address, dial, parseAddress } from "./dial.js";
import { Gate } from "./gate.js";
import { history } from "./history.js";
import type { ContextId, Position, TurnId } from "./ids.js";
import { type ClientOptions, type ResolvedOptions, resolveOptions } from "./options.js";
import { verifyTurn } from "./payload-of.js";
import { Subscription } from "./subscription.js";

const LIMIT_DEFAULT = 64;

/** What every call takes. */
export interface CallOptions {
	/** Gives up waiting. A write that was sent may still be carried out. */
	readonly signal?: AbortSignal;
}

/** A turn to append. */
export interface NewTurn {
	/** Its declared type. */
	readonly type: TypeRef;
	/** Its payload, uncompressed; it must not change until the append is settled. */
	readonly payload: Uint8Array;
	/** The payload's encoding; msgpack unless given. */
	readonly encoding?: number;
	/** The payload's hash, for a caller that has it; the server refuses a wrong one. */
	readonly hash?: BlobHash;
}

/** Where and how to append. */
export interface AppendOptions {
	/** The context. */
	readonly contextId: ContextId;
	/** The turn to append to; the context's head unless given. */
	readonly parentId?: TurnId;
	/** Makes the request safe to repeat; its scope is the context. */
	readonly key?: IdempotencyKey;
	/** The head that the context must have; null if it must be empty. */
	readonly expectedHead?: TurnId | null;
}

/** An append of one turn. */
export interface Append extends AppendOptions, NewTurn {
	/** The root of a filesystem tree that the server has. */
	readonly fsRoot?: BlobHash;
}

/** An append of 1 to 1024 turns, each the child of the one before; all or none. */
export interface BatchAppend extends AppendOptions {
	/** The turns, first one first. */
	readonly turns: readonly NewTurn[];
}

/** How turns are read. */
export interface ReadOptions extends CallOptions {
	/** With payloads; true unless given. */
	readonly payload?: boolean;
	/** Payloads in the form in which they are kept, perhaps zstd: see `payloadOf`. */
	readonly stored?: boolean;
	/** With `createdAt` and `fsRoot`. */
	readonly details?: boolean;
}

/** How a page of turns is read. */
export interface PageOptions extends ReadOptions {
	/** At most so many turns; 64 unless given, cut to what the server allows. */
	readonly limit?: number;
}

/** What to follow, and from where. */
export interface SubscribeOptions extends ReadOptions {
	/** The context; all of them unless given. */
	readonly contextId?: ContextId;
	/** Follows what comes after this position; 0n replays everything, without it only new appends come. */
	readonly after?: Position;
}

/** Connects to a server's binary port, such as `127.0.0.1:9009`, and introduces itself. Tries once. */
export async function connect(address: string, options: ClientOptions & CallOptions = {}): Promise<Client> {
	const { signal, ...rest } = options;
	signal?.throwIfAborted();
	const client = new Client(parseAddress(address), resolveOptions(rest));
	const giveUp = () => client.close();
	signal?.addEventListener("abort", giveUp, { once: true });
	try {
		await client.connection();
	} catch (error) {
		client.close();
		signal?.throwIfAborted();
		throw error;
	} finally {
		signal?.removeEventListener("abort", giveUp);
	}
	return client;
}

/** A client of one server. Made by {@link connect}. */
export class Client {
	/** @internal */
	readonly gate: Gate;
	#current: Connection | null = null;
	#dialling: Promise<Connection> | null = null;
	readonly #closing = new AbortController();

	/** @internal */
	constructor(
		private readonly address: Address,
		/** @internal */
		readonly options: ResolvedOptions,
	) {
		this.gate = new Gate(options.inFlightMax, options.inFlightBytesMax);
	}

	/** Creates a context, empty or from a turn. With a key it is repeated safely. */
	createContext(
		create: { readonly base?: TurnId; readonly key?: IdempotencyKey } & CallOptions = {},
	): Promise<responses.ContextHead> {
		return this.#makeContext(requests.createContext, create.base ?? null, create);
	}

	/** Forks a context from a turn. With a key it is repeated safely. */
	forkContext(
		fork: { readonly base: TurnId; readonly key?: IdempotencyKey } & CallOptions,
	): Promise<responses.ContextHead> {
		return this.#makeContext(requests.forkContext, fork.base, fork);
	}

	/** Reads a context's head. */
	head(contextId: ContextId, options?: CallOptions): Promise<responses.ContextHead> {
		return this.#ask(requests.getHead, contextId, responses.contextHead, options);
	}

	/** Appends a turn and waits until it is durable. With a key it is repeated safely. */
	append(append: Append, options?: CallOptions): Promise<responses.TurnAck> {
		return this.#call({
			codec: requests.appendTurn,
			request: {
				contextId: append.contextId,
				parentId: append.parentId ?? null,
				turn: contentOf(append),
				key: append.key ?? "",
				fsRoot: append.fsRoot,
				expectedHead: append.expectedHead,
			},
			answer: responses.turnAck,
			repeat: repeatWith(append.key),
			bytes: append.payload.length,
			signal: options?.signal,
		});
	}

	/** Appends turns, all or none. With a key it is repeated safely. */
	appendBatch(append: BatchAppend, options?: CallOptions): Promise<responses.BatchAck> {
		return this.#call({
			codec: requests.appendBatch,
			request: {
				contextId: append.contextId,
				parentId: append.parentId ?? null,
				turns: append.turns.map(contentOf),
				key: append.key ?? "",
				expectedHead: append.expectedHead,
			},
			answer: responses.batchAck,
			repeat: repeatWith(append.key),
			bytes: append.turns.reduce((sum, turn) => sum + turn.payload.length, 0),
			signal: options?.signal,
		});
	}

	/** The turns nearest to the head, oldest first. */
	last(contextId: ContextId, options: PageOptions = {}): Promise<readonly Turn[]> {
		return this.#page(requests.getLast, pageOf(contextId, options), options);
	}

	/** The nearest ancestors of a turn, oldest first. The turn itself is not among them. */
	before(contextId: ContextId, before: TurnId, options: PageOptions = {}): Promise<readonly Turn[]> {
		return this.#page(requests.getBefore, { ...pageOf(contextId, options), before }, options);
	}

	/** The turns of a range of depths on the way to the head, oldest first. */
	range(contextId: ContextId, startDepth: number, options: PageOptions = {}): Promise<readonly Turn[]> {
		return this.#page(requests.getRange, { ...pageOf(contextId, options), startDepth }, options);
	}

	/** All turns of a context from its head back to its root, newest first, fetched a page at a time. */
	history(
		contextId: ContextId,
		options: ReadOptions & { readonly pageTurns?: number } = {},
	): AsyncGenerator<Turn, void, void> {
		return history(this, contextId, options);
	}

	/** A blob's uncompressed bytes. */
	async blob(hash: BlobHash, options?: CallOptions): Promise<Uint8Array> {
		const bytes = await this.#ask(requests.getBlob, hash, responses.blob, options);
		if (this.options.verifyReads) verifyHash(hash, bytes);
		return bytes;
	}

	/** The entries of a directory: of a turn's filesystem root, or of a directory's entry. */
	async tree(hash: BlobHash, options?: CallOptions): Promise<TreeEntry[]> {
		return decodeTree(await this.blob(hash, options));
	}

	/** Stores a blob. Returns its hash and whether it was new. */
	putBlob(bytes: Uint8Array, options?: CallOptions): Promise<responses.BlobAck> {
		const request = { hash: hashOf(bytes), bytes };
		return this.#ask(requests.putBlob, request, responses.blobAck, { ...options, bytes: bytes.length });
	}

	/** Which of these blobs the server has, in the order of the question. */
	async hasBlobs(hashes: readonly BlobHash[], options?: CallOptions): Promise<readonly boolean[]> {
		const present: boolean[] = [];
		do {
			const part = hashes.slice(present.length, present.length + requests.HAS_BLOBS_MAX);
			const answers = await this.#ask(requests.hasBlobs, part, responses.blobsPresent, options);
			if (answers.length !== part.length) {
				throw new ProtocolError("wrong_answer", `${answers.length} answers for ${part.length} blobs`);
			}
			for (const answer of answers) present.push(answer);
		} while (present.length < hashes.length);
		return present;
	}

	/** Sets a turn's filesystem root, once and for all. */
	async attachFs(turnId: TurnId, root: BlobHash, options?: CallOptions): Promise<void> {
		await this.#ask(requests.attachFs, { turnId, root }, responses.attachedFs, options);
	}

	/** Publishes a registry bundle, as JSON text or as an object. Returns whether it was new. */
	async putBundle(bundle: string | { readonly bundle_id: string }, options?: CallOptions): Promise<boolean> {
		const json = Buffer.from(typeof bundle === "string" ? bundle : JSON.stringify(bundle));
		const id = typeof bundle === "string" ? bundleIdIn(bundle) : bundle.bundle_id;
		return this.#ask(requests.putBundle, { id, json }, responses.bundleWasNew, { ...options, bytes: json.length });
	}

	/** Follows appends. It connects when its first event is awaited, and again after every loss. */
	subscribe(options: SubscribeOptions = {}): Subscription {
		return new Subscription(this, options);
	}

	/** Ends the connection. Whatever still waits is rejected with a `LostError` whose reason is `closed`. */
	close(): void {
		this.#closing.abort(new LostError("closed", "the client was closed"));
		this.#current?.close();
	}

	/** @internal */
	get live(): Connection | null {
		return this.#current?.lost === null ? this.#current : null;
	}

	/** @internal The live connection. Callers that find none share one dial. */
	connection(): Promise<Connection> {
		if (this.#closing.signal.aborted) return Promise.reject(this.#closing.signal.reason);
		if (this.live !== null) return Promise.resolve(this.live);
		this.#dialling ??= this.#dial().finally(() => {
			this.#dialling = null;
		});
		return this.#dialling;
	}

	async #dial(): Promise<Connection> {
		const connection = await dial(this.address, this.options, this.#closing.signal);
		this.#current = connection;
		if (this.#closing.signal.aborted) connection.close();
		return connection;
	}

	#page<Request extends requests.GetLast>(
		codec: requests.RequestCodec<Request>,
		request: Request,
		options: ReadOptions,
	): Promise<readonly Turn[]> {
		const page = this.#ask(codec, request, responses.turnPage(request.details), options);
		return this.options.verifyReads && request.payload ? page.then(verified) : page;
	}

	#makeContext(
		codec: requests.RequestCodec<requests.CreateContext>,
		base: TurnId | null,
		{ key, signal }: { readonly key?: IdempotencyKey } & CallOptions,
	): Promise<responses.ContextHead> {
		const repeat = repeatWith(key);
		const request = { base, key: repeat === "safe" ? key : undefined };
		return this.#call({ codec, request, answer: responses.contextHead, repeat, bytes: 0, signal });
	}

	/** Asks what may be repeated: the second time changes nothing. */
	#ask<Request, Answer>(
		codec: requests.RequestCodec<Request>,
		request: Request,
		answer: ResponseCodec<Answer>,
		{ signal, bytes = 0 }: CallOptions & { readonly bytes?: number } = {},
	): Promise<Answer> {
		return this.#call({ codec, request, answer, repeat: "safe", bytes, signal });
	}

	#call<Request, Answer>(question: Question<Request, Answer>): Promise<Answer> {
		const max = this.options.requestBytesMax;
		if (question.bytes > max) return Promise.reject(new TooLargeError(question.bytes, max));
		return call(this, question);
	}
}

/** The wire form of a turn to append. Hashes the payload while it is written, unless the caller gave the hash. */
function contentOf(turn: NewTurn): NewContent {
	return {
		type: turn.type,
		encoding: turn.encoding ?? MSGPACK,
		compression: "none",
		uncompressedLength: turn.payload.length,
		hash: turn.hash,
		payload: turn.payload,
	};
}

function bundleIdIn(json: string): string {
	try {
		return (JSON.parse(json) as { bundle_id: string }).bundle_id;
	} catch (cause) {
		throw new TypeError("the bundle is no JSON object", { cause });
	}
}

/** A write may be repeated if it has a key. */
function repeatWith(key: IdempotencyKey | undefined): Repeat {
	return key === undefined || key.length === 0 ? "unsafe" : "safe";
}

/** What a read asks for, with everything decided. */
export function itemOptions({ payload = true, stored = false, details = false }: ReadOptions): requests.ItemOptions {
	return { payload, stored, details };
}

function pageOf(contextId: ContextId, options: PageOptions): requests.GetLast {
	const { limit = LIMIT_DEFAULT, payload = true, stored = false, details = false } = options;
	return { contextId, limit, payload, stored, details };
}

function verified(turns: readonly Turn[]): readonly Turn[] {
	turns.forEach(verifyTurn);
	return turns;
}

/**
 * Following the store's events: an async iterator over server-sent events that survives lost connections.
 *
 * After a loss it resumes behind the last event that came, so none is missed and none comes twice. A reader that wants
 * only what is new first asks where the feed ends, and so can resume before its first event. It fails when trying again
 * is useless or was tried often enough in a row. The server sends a ping every 15 s; silence for longer than the time-out
 * counts as a loss.
 */

import { Backoff, type RetryPolicy } from "../core/backoff.js";
import { isRetryable, LostError, ProtocolError } from "../core/errors.js";
import type { ContextId, Position } from "./ids.js";
import { EVENT_KINDS, type Stats, type StoreEvent } from "./resources.js";
import { EventParser, type ServerSentEvent } from "./sse.js";
import { jsonOf, lossOf, type Transport } from "./transport.js";

/** What to follow, and from where. */
export interface EventOptions {
	/** The context; all of them unless given. */
	readonly contextId?: ContextId;
	/** Follows what comes after this position; `"0"` replays all, without it only new events come. */
	readonly after?: Position;
	/** Ends the stream; the iterator then throws the signal's reason. */
	readonly signal?: AbortSignal;
	/** Called whenever the stream is open: from then on nothing is missed. */
	readonly onOpen?: () => void;
	/** Called whenever an open stream has ended, before it is opened again. */
	readonly onClose?: () => void;
	/** How often to try again in a row; the client's policy unless given. */
	readonly retry?: RetryPolicy;
}

/** The events, one by one. */
export async function* storeEvents(
	transport: Transport,
	options: EventOptions,
): AsyncGenerator<StoreEvent, void, void> {
	const backoff = new Backoff(options.retry ?? transport.retry);
	let after = options.after;
	const onOpen = () => {
		backoff.accepted();
		options.onOpen?.();
	};
	for (;;) {
		try {
			after ??= await endOfFeed(transport, options.signal);
			for await (const event of connection(transport, { ...options, onOpen }, after)) {
				backoff.reset();
				if (event.id !== "") after = event.id;
				const known = storeEvent(event);
				if (known !== null) yield known;
			}
			throw new LostError("ended", "the server ended the stream");
		} catch (error) {
			options.signal?.throwIfAborted();
			if (!isRetryable(error) || !(await backoff.pause(options.signal))) throw error;
		}
	}
}

async function endOfFeed(transport: Transport, signal: AbortSignal | undefined): Promise<Position> {
	return String(jsonOf<Stats>(await transport.ask({ path: "/v1/stats", signal })).events);
}

/** The events of one connection, until it ends. */
async function* connection(
	transport: Transport,
	{ contextId, signal, onOpen, onClose }: EventOptions,
	after: Position,
): AsyncGenerator<ServerSentEvent, void, void> {
	const controller = new AbortController();
	const stop = () => controller.abort(signal?.reason);
	signal?.addEventListener("abort", stop, { once: true });
	const late = new LostError("silent", `nothing came for ${transport.timeoutMs} ms`);
	const timer = new Deadline(transport.timeoutMs, () => controller.abort(late));
	let isOpen = false;
	try {
		const path = contextId === undefined ? "/v1/events" : `/v1/contexts/${contextId}/events`;
		const headers = { accept: "text/event-stream", "last-event-id": after };
		const response = await transport.open({ path, headers }, controller.signal);
		onOpen?.();
		isOpen = true;
		yield* events(response, timer);
	} catch (error) {
		throw controller.signal.aborted ? controller.signal.reason : lossOf(error);
	} finally {
		timer.stop();
		signal?.removeEventListener("abort", stop);
		controller.abort();
		if (isOpen) onClose?.();
	}
}

async function* events(response: Response, timer: Deadline): AsyncGenerator<ServerSentEvent, void, void> {
	if (response.body === null) return;
	const parser = new EventParser();
	const reader = response.body.getReader();
	for (;;) {
		// The time runs only while this side reads: a caller that is busy with an event is no silence of the server.
		timer.start();
		const { done, value } = await reader.read();
		timer.stop();
		if (done) return;
		yield* parser.push(value);
	}
}

/** Calls once if it is not stopped in time. Runs from its making. */
class Deadline {
	#timer: ReturnType<typeof setTimeout> | undefined;

	constructor(
		private readonly ms: number,
		private readonly onLate: () => void,
	) {
		this.start();
	}

	start(): void {
		this.stop();
		this.#timer = setTimeout(this.onLate, this.ms);
	}

	stop(): void {
		clearTimeout(this.#timer);
	}
}

/** The event as this client knows it; null if it does not. */
function storeEvent({ id, event, data }: ServerSentEvent): StoreEvent | null {
	const kind = EVENT_KINDS.find((known) => known === event);
	if (kind === undefined) return null;
	if (!/^[0-9]{1,20}$/.test(id)) throw new ProtocolError("bad_value", "an event without a position");
	return { position: id, kind, data: jsonOf({ body: new TextEncoder().encode(data) }) } as StoreEvent;
}

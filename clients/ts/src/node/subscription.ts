/**
 * Following appends: an async iterator that survives lost connections and slow readers.
 *
 * Whatever ends it on the way, the next step subscribes again after the last event that was handed out, so the
 * reader sees every event once. A subscription to "only new" events first learns where the feed ends, and from then
 * on follows a position: losing it before its first event loses nothing. It fails only when trying again is useless
 * or was tried often enough; asking for the next event then tries again, behind an append that cannot be delivered.
 */

import { orAborted } from "../core/abort.js";
import { Backoff } from "../core/backoff.js";
import { isRetryable, ProtocolError, ServerError } from "../core/errors.js";
import { type Frame, MsgType } from "../wire/frame.js";
import { subscribe } from "../wire/requests.js";
import { type Delivery, delivery, empty, FLAG_CAUGHT_UP, type ResponseCodec } from "../wire/responses.js";
import { readAnswer } from "./answer.js";
import { call } from "./call.js";
import { type Client, itemOptions, type SubscribeOptions } from "./client.js";
import type { Connection } from "./connection.js";
import { FrameQueue } from "./frame-queue.js";
import type { Position } from "./ids.js";
import { verifyTurn } from "./payload-of.js";

/** A position that no feed reaches: its refusal says where the feed ends. */
const BEYOND_EVERY_END = 2n ** 64n - 2n;

interface Live {
	readonly queue: FrameQueue;
	readonly connection: Connection;
	readonly reqId: number;
}

/** Appends as they happen. Leaving a `for await` over it, or {@link return}, ends it. */
export class Subscription implements AsyncIterableIterator<Delivery> {
	readonly #backoff: Backoff;
	readonly #codec: ResponseCodec<Delivery>;
	#after: Position | null;
	#live: Live | null = null;
	#isCaughtUp = false;
	#isDone = false;

	/** @internal */
	constructor(
		private readonly client: Client,
		private readonly options: SubscribeOptions,
	) {
		this.#backoff = new Backoff(client.options.retry);
		this.#codec = delivery(options.details ?? false);
		this.#after = options.after ?? null;
	}

	/** Whether the last event, or the start, had reached the end of the feed. */
	get isCaughtUp(): boolean {
		return this.#isCaughtUp;
	}

	/** The position after which it would resume; null before a subscription to new events has begun. */
	get position(): Position | null {
		return this.#after;
	}

	/** Waits for the next append. One call at a time. */
	async next(): Promise<IteratorResult<Delivery, undefined>> {
		while (!this.#isDone) {
			try {
				const value = await this.#step();
				if (value !== null) return { done: false, value };
			} catch (error) {
				await this.#recover(error);
			}
		}
		return { done: true, value: undefined };
	}

	/** Ends the subscription. */
	async return(): Promise<IteratorResult<Delivery, undefined>> {
		this.#isDone = true;
		this.#drop();
		return { done: true, value: undefined };
	}

	[Symbol.asyncIterator](): this {
		return this;
	}

	/** Subscribes if need be and takes one frame; null if it was no append. */
	async #step(): Promise<Delivery | null> {
		const { signal } = this.options;
		signal?.throwIfAborted();
		this.#live ??= await this.#open();
		const frame = await this.#live.queue.next(signal);
		if (frame === "stopped") {
			this.#live = null;
			return null;
		}
		if (frame instanceof Error) throw frame;
		return this.#take(frame);
	}

	#take(frame: Frame): Delivery | null {
		const isAcceptance = frame.msgType === MsgType.Subscribe && frame.bytes === 0;
		const value = isAcceptance ? this.#accepted(frame) : readAnswer(frame, MsgType.Subscribe, this.#codec);
		this.#isCaughtUp = (frame.flags & FLAG_CAUGHT_UP) !== 0;
		if (value === null) return null;
		// The position moves last: an event that fails a check was not handed out, and comes again.
		this.#checkPosition(value.position);
		this.#backoff.reset();
		if (this.client.options.verifyReads && (this.options.payload ?? true)) verifyTurn(value.turn);
		this.#after = value.position;
		return value;
	}

	#accepted(frame: Frame): null {
		readAnswer(frame, MsgType.Subscribe, empty);
		this.#backoff.accepted();
		return null;
	}

	#checkPosition(position: Position): void {
		const after = this.#after ?? 0n;
		if (position <= after && after < BEYOND_EVERY_END) {
			throw new ProtocolError("bad_value", `position ${position} after position ${after}`);
		}
	}

	async #open(): Promise<Live> {
		this.#after ??= await this.#endOfFeed();
		const connection = await orAborted(this.client.connection(), this.options.signal);
		const { subscriptionEventsMax, subscriptionBytesMax } = this.client.options;
		const queue: FrameQueue = new FrameQueue(subscriptionEventsMax, subscriptionBytesMax, () =>
			connection.cancel(reqId),
		);
		const reqId = connection.send(subscribe, this.#request(this.#after), queue);
		return { queue, connection, reqId };
	}

	#request(after: Position) {
		return { contextId: this.options.contextId ?? null, after, ...itemOptions(this.options) };
	}

	/** The end of the feed. The server names it when it rejects a position beyond it. */
	async #endOfFeed(): Promise<Position> {
		const question = { codec: subscribe, request: this.#request(BEYOND_EVERY_END), answer: empty } as const;
		try {
			await call(this.client, { ...question, repeat: "safe", bytes: 0, signal: this.options.signal });
		} catch (error) {
			const end = error instanceof ServerError && error.status === 409 ? positionIn(error, "last_position") : null;
			if (end !== null) return end;
			throw error;
		}
		return BEYOND_EVERY_END;
	}

	/** Prepares another try, or throws the error to the caller. */
	async #recover(error: unknown): Promise<void> {
		this.#drop();
		if (error instanceof ServerError) this.#after = later(this.#after, positionIn(error, "resume_after"));
		if (!isRetryable(error) || !(await this.#backoff.pause(this.options.signal))) throw error;
	}

	#drop(): void {
		this.#live?.connection.cancel(this.#live.reqId);
		this.#live?.queue.stop();
		this.#live = null;
	}
}

/** A position among an error's details, where it is text as all ids are. */
function positionIn(error: ServerError, name: string): Position | null {
	const value = error.details[name];
	return typeof value === "string" && /^[0-9]{1,20}$/.test(value) ? BigInt(value) : null;
}

function later(one: Position | null, other: Position | null): Position | null {
	if (one === null || other === null) return one ?? other;
	return one > other ? one : other;
}

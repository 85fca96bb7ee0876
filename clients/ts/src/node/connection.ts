/**
 * One live connection: the socket, the outbox through which callers reach it, and who waits for which answer.
 *
 * A caller's frame is written straight into the outbox; whatever has gathered within one turn of the event loop
 * leaves with one write, and while that write is under way the next gathers. Invariant: a waiter gets its answer
 * or learns why the connection ended, never both. After the end nothing can be sent: a connection is never
 * revived, the client dials a new one.
 */

import type { OnReadOpts, Socket } from "node:net";
import { LostError, TooLargeError } from "../core/errors.js";
import { ByteWriter } from "../wire/bytes.js";
import {
	type Frame,
	FrameGatherer,
	FrameTooLongError,
	type GatheredFrame,
	HEADER_BYTES,
	MsgType,
} from "../wire/frame.js";
import { cancel, type RequestCodec, writeRequest } from "../wire/requests.js";
import { failure, serverError } from "../wire/responses.js";
import { type Waiter, Waiters } from "./waiters.js";

/** A buffer is kept for the next frames unless one made it grow beyond this. */
const SPARE_BYTES_MAX = 1 << 20;
const OUTBOX_BYTES = 64 << 10;
/** The longest write. A long frame on a slow line then shows progress part by part, and does not look silent. */
const WRITE_BYTES = 256 << 10;
/** How often the connection looks for silence within the time-out. */
const SILENCE_TICKS = 4;

/** What a connection needs to know about its bounds. */
export interface ConnectionBounds {
	readonly requestBytesMax: number;
	readonly frameBytesMax: number;
	readonly answerTimeoutMs: number;
}

/** Receives and drops the answer to a request whose caller has stopped waiting. */
const NOBODY: Waiter = { isReply: true, onFrame: () => undefined, onLost: () => undefined };

export class Connection {
	readonly #socket: Socket;
	readonly #bounds: ConnectionBounds;
	readonly #gatherer: FrameGatherer;
	readonly #waiters = new Waiters();
	readonly #silence: NodeJS.Timeout;
	#outbox = new ByteWriter(OUTBOX_BYTES);
	#spare: ByteWriter | null = new ByteWriter(OUTBOX_BYTES);
	#flushIsDue = false;
	/** How many waiters wait for one answer: the ones for which a silent server is a dead one. */
	#replies = 0;
	/** Subscriptions to which nothing has come yet, not even their acceptance. */
	readonly #unaccepted = new Set<number>();
	#silentTicks = 0;
	#lost: LostError | null = null;

	/** Opens a socket that the connection can pause. Requests that are sent before it is connected wait. */
	constructor(openSocket: (onread: OnReadOpts) => Socket, bounds: ConnectionBounds) {
		this.#bounds = bounds;
		this.#gatherer = new FrameGatherer(bounds.frameBytesMax);
		const socket = openSocket({
			buffer: () => this.#gatherer.room(),
			callback: (bytes) => this.#receive(bytes),
		});
		this.#socket = socket;
		this.#silence = setInterval(() => this.#watch(), bounds.answerTimeoutMs / SILENCE_TICKS);
		this.#silence.unref();
		socket.setNoDelay(true);
		socket.on("error", (cause) => this.#end(new LostError("io", cause.message, { cause })));
		socket.on("close", () => this.#end(new LostError("ended", "the server closed it")));
	}

	/** Why the connection has ended; null while it lives. */
	get lost(): LostError | null {
		return this.#lost;
	}

	/** Queues a request and returns its id. Throws if the connection has ended or the request is too large. */
	send<T>(codec: RequestCodec<T>, request: T, waiter: Waiter): number {
		if (this.#lost !== null) throw this.#lost;
		const reqId = this.#waiters.nextId();
		this.#write(codec, reqId, request);
		this.#waiters.set(reqId, waiter);
		if (waiter.isReply) this.#replies += 1;
		else this.#unaccepted.add(reqId);
		this.#flushSoon();
		return reqId;
	}

	/** Forgets who waits for an answer; it is dropped when it comes, and `onSettled` is called in its place. */
	abandon(reqId: number, onSettled: () => void): void {
		this.#waiters.set(reqId, { isReply: true, onFrame: onSettled, onLost: onSettled });
	}

	/** Ends a subscription. Harmless if it has ended already. */
	cancel(reqId: number): void {
		this.#unaccepted.delete(reqId);
		if (this.#waiters.delete(reqId) && this.#lost === null) this.send(cancel, BigInt(reqId), NOBODY);
	}

	/** Ends the connection; everybody who still waits learns why, by default that this side closed it. */
	close(why = new LostError("closed", "the client was closed")): void {
		this.#end(why);
	}

	#write<T>(codec: RequestCodec<T>, reqId: number, request: T): void {
		const out = this.#outbox;
		const start = out.length;
		try {
			writeRequest(out, codec, reqId, request);
		} catch (error) {
			out.truncate(start);
			throw error;
		}
		const bytes = out.length - start - HEADER_BYTES;
		if (bytes > this.#bounds.requestBytesMax) {
			out.truncate(start);
			throw new TooLargeError(bytes, this.#bounds.requestBytesMax);
		}
	}

	/** Lets callers that are about to send join this write. */
	#flushSoon(): void {
		if (this.#flushIsDue || this.#spare === null) return;
		this.#flushIsDue = true;
		setImmediate(() => {
			this.#flushIsDue = false;
			this.#flush();
		});
	}

	readonly #flush = (): void => {
		if (this.#lost !== null || this.#spare === null || this.#outbox.length === 0) return;
		const full = this.#outbox;
		this.#outbox = this.#spare;
		this.#spare = null;
		this.#writeFrom(full.written(), () => {
			full.truncate(0);
			this.#spare = full.capacity > SPARE_BYTES_MAX ? new ByteWriter(OUTBOX_BYTES) : full;
			this.#flush();
		});
	};

	/** Writes part after part. A socket that fails says so by itself. */
	#writeFrom(bytes: Buffer, onWritten: () => void): void {
		this.#socket.write(bytes.subarray(0, WRITE_BYTES), (error) => {
			if (error) return;
			this.#silentTicks = 0;
			if (bytes.length > WRITE_BYTES) this.#writeFrom(bytes.subarray(WRITE_BYTES), onWritten);
			else onWritten();
		});
	}

	/** Receives bytes from the socket. Returns whether to continue reading. */
	#receive(bytes: number): boolean {
		this.#silentTicks = 0;
		try {
			this.#gatherer.filled(bytes, this.#deliver);
		} catch (cause) {
			if (!(cause instanceof FrameTooLongError)) throw cause;
			this.#refuse(cause);
		}
		// The callers of these answers run first, and may send more. It leaves before the next bytes are read, so the
		// server has work while this side reads.
		process.nextTick(this.#flush);
		return this.#lost === null;
	}

	/** Ends the connection because of an answer that is too long. Who asked for it learns that; the others may repeat. */
	#refuse(cause: FrameTooLongError): void {
		const asker = this.#waiters.get(cause.id);
		this.#waiters.delete(cause.id);
		this.#end(new LostError("frame_too_long", cause.message, { cause }));
		asker?.onLost(cause);
	}

	/** Passes a frame to its waiter. The server may still send frames of a subscription that was just cancelled. */
	readonly #deliver = (frame: GatheredFrame): void => {
		const { id } = frame;
		const waiter = this.#waiters.get(id);
		const isError = frame.msgType === MsgType.Error;
		if (waiter === null) {
			if (isError && id === 0) this.#end(refusal(frame));
			return;
		}
		if (waiter.isReply || isError) this.#waiters.delete(id);
		if (waiter.isReply) this.#replies -= 1;
		else this.#unaccepted.delete(id);
		waiter.onFrame(frame);
	};

	/** Ends the connection when requests were unanswered and nothing moved, either way, for the whole time-out. */
	#watch(): void {
		const isWaiting = this.#replies > 0 || this.#unaccepted.size > 0;
		this.#silentTicks = isWaiting ? this.#silentTicks + 1 : 0;
		// One tick more than the time-out has, because the first may come right after the request was sent.
		if (this.#silentTicks <= SILENCE_TICKS) return;
		this.#end(new LostError("silent", `no answer for ${this.#bounds.answerTimeoutMs} ms`));
	}

	#end(lost: LostError): void {
		if (this.#lost !== null) return;
		this.#lost = lost;
		clearInterval(this.#silence);
		this.#socket.destroy();
		const waiters = this.#waiters.takeAll();
		this.#replies = 0;
		this.#unaccepted.clear();
		for (const waiter of waiters) waiter.onLost(lost);
	}
}

/** Why the server is about to close the connection. */
function refusal(frame: Frame): LostError {
	try {
		const cause = serverError(failure.read(frame.payload));
		return new LostError("refused", cause.message, { cause });
	} catch (cause) {
		return new LostError("ended", "the server closed it without a readable reason", { cause });
	}
}

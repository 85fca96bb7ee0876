/**
 * The frames of one subscription, on their way from the connection to the subscription's reader.
 *
 * Bounded in frames and in bytes, and the connection never waits for it: what does not fit ends the queue, and the
 * reader, once it has read the queued frames, subscribes again. Invariant: an empty queue takes any one frame, so a
 * reader that resumes after every overrun still gets on.
 */

import type { LostError, ProtocolError } from "../core/errors.js";
import type { Frame } from "../wire/frame.js";
import type { Waiter } from "./waiters.js";

/** Why a queue has ended: the connection was lost or unusable, or the reader was too slow or has stopped. */
export type QueueEnd = LostError | ProtocolError | "stopped";

export class FrameQueue implements Waiter {
	readonly isReply = false;
	#frames: Frame[] = [];
	#bytes = 0;
	#end: QueueEnd | null = null;
	#wake: (() => void) | null = null;

	/** `onOverrun` is called once, when a frame did not fit. */
	constructor(
		private readonly eventsMax: number,
		private readonly bytesMax: number,
		private readonly onOverrun: () => void,
	) {}

	onFrame(frame: Frame): void {
		if (this.#end !== null) return;
		if (!this.#hasRoom(frame.bytes)) {
			this.#finish("stopped");
			this.onOverrun();
			return;
		}
		frame.payload.own();
		this.#frames.push(frame);
		this.#bytes += frame.bytes;
		this.#wake?.();
	}

	onLost(error: LostError | ProtocolError): void {
		this.#finish(error);
	}

	/** Takes no more; a reader that waits learns it. */
	stop(): void {
		this.#finish("stopped");
	}

	/** The next frame, or the reason why the queue has ended. Rejects with the signal's reason on abort. */
	async next(signal: AbortSignal | undefined): Promise<Frame | QueueEnd> {
		for (;;) {
			signal?.throwIfAborted();
			const frame = this.#frames.shift();
			if (frame !== undefined) {
				this.#bytes -= frame.bytes;
				return frame;
			}
			if (this.#end !== null) return this.#end;
			await this.#somethingNew(signal);
		}
	}

	#somethingNew(signal: AbortSignal | undefined): Promise<void> {
		return new Promise((resolve) => {
			const wake = () => {
				signal?.removeEventListener("abort", wake);
				this.#wake = null;
				resolve();
			};
			signal?.addEventListener("abort", wake, { once: true });
			this.#wake = wake;
		});
	}

	/**
	 * The acceptance of a subscription is a frame without bytes. It takes none of the places for events, and behind it
	 * any one event fits, as in an empty queue.
	 */
	#hasRoom(bytes: number): boolean {
		const fits = this.#bytes === 0 || this.#bytes + bytes <= this.bytesMax;
		return fits && this.#frames.length <= this.eventsMax;
	}

	#finish(end: QueueEnd): void {
		this.#end ??= end;
		this.#wake?.();
	}
}

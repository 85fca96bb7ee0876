/**
 * Who waits for which answer, by request id.
 *
 * A `Map` that is filled and emptied all the time leaves a chain of its former tables behind, and a collector that
 * has promoted one of them keeps all later ones alive, with every answer in them. Here a place is used again instead.
 * Invariant: ids ascend, and no two ids that are in use have the same place; an id whose place is taken is left out.
 */

import type { LostError, ProtocolError } from "../core/errors.js";
import type { Frame } from "../wire/frame.js";

/** Who waits for the frames with one request id. */
export interface Waiter {
	/** Whether one answer ends the wait; a subscription waits until it is cancelled or refused. */
	readonly isReply: boolean;
	/** Receives a frame. A receiver that keeps the payload must copy it. */
	onFrame(frame: Frame): void;
	/** Learns that no more frames come: the connection was lost, or the answer is not what the protocol says. */
	onLost(error: LostError | ProtocolError): void;
}

const PLACES_FIRST = 64;

export class Waiters {
	#ids: number[] = new Array(PLACES_FIRST).fill(0);
	#waiters: (Waiter | null)[] = new Array(PLACES_FIRST).fill(null);
	#count = 0;
	#nextId = 1;

	/** The id that the next request gets; it stays so until that is {@link set}. */
	nextId(): number {
		if (this.#count * 2 > this.#ids.length) this.#grow();
		while (this.#waiters[this.#place(this.#nextId)] !== null) this.#nextId += 1;
		return this.#nextId;
	}

	/** Lets somebody wait under an id: the next one, or one that is in use. */
	set(id: number, waiter: Waiter): void {
		const place = this.#place(id);
		if (this.#waiters[place] === null) this.#count += 1;
		this.#ids[place] = id;
		this.#waiters[place] = waiter;
		this.#nextId = Math.max(this.#nextId, id + 1);
	}

	/** Who waits under an id. */
	get(id: number): Waiter | null {
		const place = this.#place(id);
		return this.#ids[place] === id ? (this.#waiters[place] ?? null) : null;
	}

	/** Ends the wait and returns whether there was one. */
	delete(id: number): boolean {
		if (this.get(id) === null) return false;
		this.#waiters[this.#place(id)] = null;
		this.#count -= 1;
		return true;
	}

	/** Ends every wait and returns the waiters, in the order of their ids. */
	takeAll(): Waiter[] {
		const waiting = this.#inUse();
		this.#waiters.fill(null);
		this.#count = 0;
		return waiting.map(([, waiter]) => waiter);
	}

	#inUse(): [number, Waiter][] {
		const pairs = this.#waiters.map((waiter, place) => [this.#ids[place], waiter] as const);
		return pairs.filter((pair): pair is [number, Waiter] => pair[1] !== null).sort(([a], [b]) => a - b);
	}

	/** Ids that had places of their own have them in twice as many, too. */
	#grow(): void {
		const inUse = this.#inUse();
		const places = this.#ids.length * 2;
		this.#ids = new Array(places).fill(0);
		this.#waiters = new Array(places).fill(null);
		this.#count = 0;
		for (const [id, waiter] of inUse) this.set(id, waiter);
	}

	/** The number of places is a power of two. */
	#place(id: number): number {
		return id & (this.#ids.length - 1);
	}
}

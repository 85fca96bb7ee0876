/**
 * The limit on requests in flight, by number and by bytes.
 *
 * A request that does not fit waits in a queue. Invariant: no request overtakes the queue, so requests leave in their
 * order, and small ones do not starve a large one.
 */

interface Waiting {
	readonly bytes: number;
	readonly enter: () => void;
}

export class Gate {
	#requests = 0;
	#bytes = 0;
	readonly #line: Waiting[] = [];

	constructor(
		private readonly requestsMax: number,
		private readonly bytesMax: number,
	) {}

	/** Takes room at once, if there is room and no line. */
	tryEnter(bytes: number): boolean {
		if (this.#line.length > 0 || !this.#hasRoom(bytes)) return false;
		this.#take(bytes);
		return true;
	}

	/** Calls `enter` when room was taken for it. Returns the function that takes the caller out of the line. */
	lineUp(bytes: number, enter: () => void): () => void {
		const waiting = { bytes, enter };
		this.#line.push(waiting);
		return () => this.#giveUp(waiting);
	}

	/** Gives room back. */
	leave(bytes: number): void {
		this.#requests -= 1;
		this.#bytes -= bytes;
		this.#admitLine();
	}

	#giveUp(waiting: Waiting): void {
		const index = this.#line.indexOf(waiting);
		if (index >= 0) this.#line.splice(index, 1);
		// A large request at the front may have held back smaller ones.
		this.#admitLine();
	}

	#admitLine(): void {
		for (let next = this.#line[0]; next !== undefined && this.#hasRoom(next.bytes); next = this.#line[0]) {
			this.#line.shift();
			this.#take(next.bytes);
			next.enter();
		}
	}

	#take(bytes: number): void {
		this.#requests += 1;
		this.#bytes += bytes;
	}

	/** One request always fits, however large. */
	#hasRoom(bytes: number): boolean {
		if (this.#requests === 0) return true;
		return this.#requests < this.requestsMax && this.#bytes + bytes <= this.bytesMax;
	}
}

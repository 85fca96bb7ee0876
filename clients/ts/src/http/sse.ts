/**
 * Takes a text/event-stream apart. Pieces may end anywhere, within a character too; lines end with CR, LF or both.
 *
 * What has not ended yet is bounded: a line or an event that grows beyond the bound is a `ProtocolError`.
 */

import { ProtocolError } from "../core/errors.js";

/** One event of a stream. */
export interface ServerSentEvent {
	/** The last id that the stream gave, up to this event; empty before the first. */
	readonly id: string;
	readonly event: string;
	readonly data: string;
}

const EVENT_CHARS_MAX = 1 << 20;

export class EventParser {
	readonly #decoder = new TextDecoder();
	#rest = "";
	#id = "";
	#event = "";
	#data: string[] = [];
	#chars = 0;

	/** Receives a piece and returns every event that it completes. */
	push(piece: Uint8Array): ServerSentEvent[] {
		const text = this.#rest + this.#decoder.decode(piece, { stream: true });
		// A CR at the end stays in the rest: the LF that belongs to it may be in the next piece.
		const lines = text.split(/\r\n|\n|\r(?!$)/);
		this.#rest = lines.pop() ?? "";
		const events: ServerSentEvent[] = [];
		for (const line of lines) {
			const event = this.#line(line);
			if (event !== null) events.push(event);
		}
		this.#check(this.#rest.length + this.#chars);
		return events;
	}

	#line(line: string): ServerSentEvent | null {
		if (line === "") return this.#dispatch();
		const colon = line.indexOf(":");
		const field = colon < 0 ? line : line.slice(0, colon);
		const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
		if (field === "data") this.#data.push(value);
		else if (field === "event") this.#event = value;
		else if (field === "id" && !value.includes("\0")) this.#id = value;
		this.#chars += line.length;
		this.#check(this.#chars);
		return null;
	}

	#dispatch(): ServerSentEvent | null {
		const event = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
		const isEmpty = this.#data.length === 0;
		this.#event = "";
		this.#data = [];
		this.#chars = 0;
		return isEmpty ? null : event;
	}

	#check(chars: number): void {
		if (chars > EVENT_CHARS_MAX) {
			throw new ProtocolError("frame_too_long", `an event of more than ${EVENT_CHARS_MAX} characters`);
		}
	}
}

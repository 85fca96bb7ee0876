/**
 * One request from its making to its end, through as many tries as are safe.
 *
 * It waits for room, for a connection, for the answer, and between tries. Invariants: its promise settles exactly
 * once. Then nothing refers to the call any more: neither the gate's line nor a connection's waiters, no timer, no
 * abort listener. A call that is aborted after it was sent keeps its room until the answer comes: the server still
 * works on it, and its bytes may not have left yet. A request that is lost is repeated only where repeating cannot do
 * harm.
 */

import { Backoff } from "../core/backoff.js";
import {
	isRetryable,
	LostError,
	OutcomeUnknownError,
	type ProtocolError,
	ServerError,
	type TurnkeepError,
} from "../core/errors.js";
import type { Frame } from "../wire/frame.js";
import type { RequestCodec } from "../wire/requests.js";
import type { ResponseCodec } from "../wire/responses.js";
import { readAnswer } from "./answer.js";
import type { Connection } from "./connection.js";
import type { Gate } from "./gate.js";
import type { ResolvedOptions } from "./options.js";
import type { Waiter } from "./waiters.js";

/** Whether a request with an unknown outcome may be sent again. */
export type Repeat = "safe" | "unsafe";

/** What is asked, how, and how the answer is read. */
export interface Question<Request, Answer> {
	readonly codec: RequestCodec<Request>;
	readonly request: Request;
	readonly answer: ResponseCodec<Answer>;
	readonly repeat: Repeat;
	/** The size of the request's large parts. */
	readonly bytes: number;
	readonly signal: AbortSignal | undefined;
}

/** What a call needs of its client. */
export interface Caller {
	readonly options: ResolvedOptions;
	readonly gate: Gate;
	/** The live connection, if there is one. */
	readonly live: Connection | null;
	/** The live connection. Dials if no connection is live. */
	connection(): Promise<Connection>;
}

/** Asks, again and again while that is safe and may help. */
export function call<Request, Answer>(caller: Caller, question: Question<Request, Answer>): Promise<Answer> {
	return new Promise((resolve, reject) => {
		new Call(caller, question, resolve, reject).start();
	});
}

class Call<Request, Answer> implements Waiter {
	readonly isReply = true;
	#backoff: Backoff | null = null;
	/** Undoes whatever the call waits for right now; kept only for a call that can be aborted. */
	#giveUp: (() => void) | null = null;
	#onAbort: (() => void) | null = null;

	constructor(
		private readonly caller: Caller,
		private readonly question: Question<Request, Answer>,
		private readonly resolve: (answer: Answer) => void,
		private readonly reject: (error: unknown) => void,
	) {}

	start(): void {
		const { signal } = this.question;
		if (signal?.aborted) {
			this.reject(signal.reason);
			return;
		}
		if (signal !== undefined) this.#listen(signal);
		this.#try();
	}

	onFrame(frame: Frame): void {
		this.caller.gate.leave(this.question.bytes);
		const { codec, answer } = this.question;
		let value: Answer;
		try {
			value = readAnswer(frame, codec.msgType, answer);
		} catch (error) {
			this.#failed(this.#explain(error));
			return;
		}
		this.#letGo();
		this.resolve(value);
	}

	onLost(error: LostError | ProtocolError): void {
		this.caller.gate.leave(this.question.bytes);
		this.#failed(this.#explain(error));
	}

	#try(): void {
		const { gate } = this.caller;
		if (gate.tryEnter(this.question.bytes)) this.#connect();
		else this.#giveUp = gate.lineUp(this.question.bytes, () => this.#connect());
	}

	/** Holds its part of the limits from here on, and returns it with the answer. */
	#connect(): void {
		const { live } = this.caller;
		if (live !== null) {
			this.#send(live);
			return;
		}
		let isWanted = true;
		this.#giveUp = () => {
			isWanted = false;
			this.caller.gate.leave(this.question.bytes);
		};
		this.caller.connection().then(
			(connection) => isWanted && this.#send(connection),
			(error) => {
				if (!isWanted) return;
				this.caller.gate.leave(this.question.bytes);
				this.#failed(error);
			},
		);
	}

	#send(connection: Connection): void {
		const { codec, request, bytes, signal } = this.question;
		const { gate } = this.caller;
		try {
			const reqId = connection.send(codec, request, this);
			this.#giveUp = signal === undefined ? null : () => connection.abandon(reqId, () => gate.leave(bytes));
		} catch (error) {
			gate.leave(bytes);
			this.#failed(error);
		}
	}

	/** Tries again after a pause, or rejects the caller's promise. */
	#failed(error: unknown): void {
		this.#backoff ??= new Backoff(this.caller.options.retry);
		const pause = isRetryable(error) ? this.#backoff.next() : undefined;
		if (pause === undefined) {
			this.#letGo();
			this.reject(error);
			return;
		}
		const timer = setTimeout(() => this.#try(), pause);
		this.#giveUp = () => clearTimeout(timer);
	}

	/** What the caller should see of an error after sending. An unavailable server may have kept a write. */
	#explain(error: unknown): unknown {
		const isUnknown = error instanceof LostError || (error instanceof ServerError && error.status === 503);
		if (!isUnknown || this.question.repeat === "safe") return error;
		return new OutcomeUnknownError(error as TurnkeepError);
	}

	#listen(signal: AbortSignal): void {
		this.#onAbort = () => {
			this.#giveUp?.();
			this.#letGo();
			this.reject(signal.reason);
		};
		signal.addEventListener("abort", this.#onAbort, { once: true });
	}

	/** Leaves the signal alone: the call is settled. */
	#letGo(): void {
		if (this.#onAbort !== null) this.question.signal?.removeEventListener("abort", this.#onAbort);
	}
}

/**
 * The one WebSocket of a window: the events of a run, or a shared terminal.
 *
 * Invariant: at most one socket is open. The target that was opened last is served; one that was opened before it waits
 * and goes on when the other is closed, so a terminal in a drawer may stand over a run. A run resumes with `since`, a
 * terminal begins with a repaint, so neither loses anything by waiting.
 */

export type SocketTarget =
	/** `since` is asked on every connect: the number of the last event that the listener has. */
	| { readonly kind: "run"; readonly runId: string; readonly since: () => number }
	| { readonly kind: "session"; readonly session: string };

export type SocketState =
	| { readonly state: "connecting" }
	| { readonly state: "open" }
	/** The connection was lost, or another target is served. */
	| { readonly state: "waiting" }
	/** It does not come back by itself. */
	| { readonly state: "ended"; readonly reason: SocketEnd };

export type SocketEnd = "run-deleted" | "not-shared" | "session-not-found" | "session-ended";

export interface SocketListener {
	onText(text: string): void;
	onBytes(bytes: ArrayBuffer): void;
	onState(state: SocketState): void;
	/**
	 * The server refused the connection. A browser does not say why: the run or session may be gone, or `since` may be
	 * a number that the run does not have. The listener finds out; the socket tries again meanwhile.
	 */
	onRefused(): void;
}

/** The part of a WebSocket that is used; tests give their own. */
export interface SocketLike {
	binaryType: BinaryType;
	onopen: (() => void) | null;
	onmessage: ((event: { readonly data: unknown }) => void) | null;
	onclose: ((event: { readonly code: number }) => void) | null;
	close(code?: number): void;
}

export interface SocketPlatform {
	open(path: string): SocketLike;
	/** Whether connecting makes sense now; `retryNow` is called when that becomes true. */
	canConnect(): boolean;
	random(): number;
}

const FIRST_PAUSE_MS = 250;
const PAUSE_MS_MAX = 5_000;
const CLOSE_TOO_SLOW = 4008;

interface Followed {
	readonly target: SocketTarget;
	readonly listener: SocketListener;
	isEnded: boolean;
}

export class WindowSocket {
	readonly #followed: Followed[] = [];
	#socket: SocketLike | null = null;
	#served: Followed | null = null;
	#timer: ReturnType<typeof setTimeout> | null = null;
	#failures = 0;

	constructor(private readonly platform: SocketPlatform) {}

	/** Serves a target until the returned function is called. */
	follow(target: SocketTarget, listener: SocketListener): () => void {
		const followed: Followed = { target, listener, isEnded: false };
		this.#followed.push(followed);
		this.#serveLast();
		return () => {
			const at = this.#followed.indexOf(followed);
			if (at >= 0) this.#followed.splice(at, 1);
			if (this.#served === followed) this.#serveLast();
		};
	}

	/** Connects at once if it waits to connect: the server is back. */
	retryNow(): void {
		if (this.#socket !== null || this.#served === null) return;
		this.#failures = 0;
		this.#connect(this.#served);
	}

	/** Closes a connection that may be dead without saying so, and opens it again. */
	reconnect(): void {
		if (this.#served === null) return;
		this.#drop();
		this.#connect(this.#served);
	}

	#serveLast(): void {
		const next = this.#followed.findLast((followed) => !followed.isEnded) ?? null;
		if (next === this.#served) return;
		this.#drop();
		if (this.#served !== null && !this.#served.isEnded && this.#followed.includes(this.#served)) {
			this.#served.listener.onState({ state: "waiting" });
		}
		this.#served = next;
		this.#failures = 0;
		if (next !== null) this.#connect(next);
	}

	#drop(): void {
		if (this.#timer !== null) clearTimeout(this.#timer);
		this.#timer = null;
		const socket = this.#socket;
		this.#socket = null;
		if (socket === null) return;
		// A socket that was given up must not speak for the one that replaces it.
		socket.onopen = null;
		socket.onmessage = null;
		socket.onclose = null;
		socket.close(1000);
	}

	#connect(served: Followed): void {
		if (this.#timer !== null) clearTimeout(this.#timer);
		this.#timer = null;
		if (!this.platform.canConnect()) {
			served.listener.onState({ state: "waiting" });
			return;
		}
		served.listener.onState({ state: "connecting" });
		const socket = this.platform.open(pathOf(served.target));
		this.#socket = socket;
		socket.binaryType = "arraybuffer";
		let wasOpen = false;
		socket.onopen = () => {
			wasOpen = true;
			this.#failures = 0;
			served.listener.onState({ state: "open" });
		};
		socket.onmessage = ({ data }) => {
			if (typeof data === "string") served.listener.onText(data);
			else if (data instanceof ArrayBuffer) served.listener.onBytes(data);
		};
		socket.onclose = ({ code }) => this.#closed(served, code, wasOpen);
	}

	#closed(served: Followed, code: number, wasOpen: boolean): void {
		this.#socket = null;
		const end = endOf(code);
		if (end !== null) {
			served.isEnded = true;
			served.listener.onState({ state: "ended", reason: end });
			this.#serveLast();
			return;
		}
		served.listener.onState({ state: "waiting" });
		if (!wasOpen) served.listener.onRefused();
		// The listener may have given up meanwhile.
		if (this.#served !== served || this.#socket !== null) return;
		// The server closes a slow reader so that it comes back; everything else gets a pause.
		const pause = code === CLOSE_TOO_SLOW ? 0 : this.#nextPause();
		this.#timer = setTimeout(() => this.#connect(served), pause);
	}

	#nextPause(): number {
		const longest = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, PAUSE_MS_MAX);
		this.#failures = Math.min(this.#failures + 1, 10);
		return longest * (0.5 + this.platform.random() / 2);
	}
}

function pathOf(target: SocketTarget): string {
	switch (target.kind) {
		case "run":
			return `/ws?runId=${encodeURIComponent(target.runId)}&since=${target.since()}`;
		case "session":
			return `/ws?session=${encodeURIComponent(target.session)}`;
	}
}

/** What a close code of the server ends for good. */
function endOf(code: number): SocketEnd | null {
	switch (code) {
		case 4004:
			return "run-deleted";
		case 4403:
			return "not-shared";
		case 4404:
			return "session-not-found";
		case 4410:
			return "session-ended";
		default:
			return null;
	}
}

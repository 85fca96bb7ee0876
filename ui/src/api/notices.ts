/**
 * The one event stream of a window: `GET /v1/events`.
 *
 * It carries the store's events, which have an id and are resumed from it, and thin notices without an id, which are
 * never sent again. So after a loss the stream says `missed`, and whoever shows something refetches it.
 * Invariant: at most one request is open. Silence for longer than `SILENCE_MS_MAX` counts as a loss: the server
 * pings every 15 s.
 */

import { EventParser, type ServerSentEvent } from "@turnkeep/client/http/sse";
import type { Connection } from "./connection";

export type Notice =
	| { readonly kind: "world.changed"; readonly ref: string }
	| { readonly kind: "session.changed"; readonly ref: string }
	| { readonly kind: "run.changed"; readonly ref: string }
	| { readonly kind: "attention.changed"; readonly count: number }
	| { readonly kind: "turn.appended"; readonly contextId: string; readonly turnId: string }
	| { readonly kind: "context.created"; readonly contextId: string }
	| { readonly kind: "fs.attached"; readonly contextId: string; readonly turnId: string }
	| { readonly kind: "registry.put"; readonly bundleId: string }
	| { readonly kind: "damage"; readonly of: "turn" | "context" }
	/** Notices may have been lost: everything that is shown must be fetched again. */
	| { readonly kind: "missed" };

export const SILENCE_MS_MAX = 40_000;
const FIRST_PAUSE_MS = 250;
const PAUSE_MS_MAX = 5_000;
/** So many refused connections in a row mean that no server is there, and not that one restarts. */
const REFUSALS_UNTIL_STOPPED = 4;

/** What the stream needs from its window; tests give their own. */
export interface NoticePlatform {
	open(request: { readonly after: string | null; readonly signal: AbortSignal }): Promise<Response>;
	/** Resolves after a time, or at once when the signal is aborted. */
	pause(ms: number, signal: AbortSignal): Promise<void>;
	now(): number;
	random(): number;
}

export interface NoticeListener {
	onNotice(notice: Notice): void;
	onConnection(connection: Connection): void;
	/** Called on every connect. */
	onOpen(): void;
}

type Ended = "lost" | "refused" | "signed-out" | "cannot-resume";

/** Follows the stream until the signal is aborted or the window is signed out. */
export async function followNotices(
	platform: NoticePlatform,
	listener: NoticeListener,
	signal: AbortSignal,
): Promise<void> {
	let after: string | null = null;
	let lostAt: number | null = null;
	let failures = 0;
	let refusals = 0;
	while (!signal.aborted) {
		const ended = await connectOnce(platform, signal, after, {
			onOpen() {
				// Also on the first connect: what a screen fetched before it may be outdated already.
				listener.onNotice({ kind: "missed" });
				listener.onConnection({ state: "connected" });
				listener.onOpen();
				lostAt = null;
				failures = 0;
				refusals = 0;
			},
			onEvent(event) {
				if (event.id !== "") after = event.id;
				const notice = readNotice(event);
				if (notice !== null) listener.onNotice(notice);
			},
		});
		if (signal.aborted) return;
		if (ended === "signed-out") {
			listener.onConnection({ state: "signed-out" });
			return;
		}
		if (ended === "cannot-resume") after = null;
		refusals = ended === "refused" ? refusals + 1 : 0;
		lostAt ??= platform.now();
		const isStopped = refusals >= REFUSALS_UNTIL_STOPPED;
		listener.onConnection({ state: isStopped ? "stopped" : "reconnecting", since: lostAt });
		const longest = Math.min(FIRST_PAUSE_MS * 2 ** failures, PAUSE_MS_MAX);
		failures = Math.min(failures + 1, 10);
		await platform.pause(longest * (0.5 + platform.random() / 2), signal);
	}
}

interface StreamListener {
	onOpen(): void;
	onEvent(event: ServerSentEvent): void;
}

async function connectOnce(
	platform: NoticePlatform,
	signal: AbortSignal,
	after: string | null,
	listener: StreamListener,
): Promise<Ended> {
	const attempt = new AbortController();
	const stop = () => attempt.abort();
	signal.addEventListener("abort", stop, { once: true });
	try {
		const response = await platform.open({ after, signal: attempt.signal });
		if (response.status === 401) return "signed-out";
		if (response.status === 409) return "cannot-resume";
		if (!response.ok || response.body === null) return "lost";
		listener.onOpen();
		await readEvents(platform, response.body, listener, attempt);
		return "lost";
	} catch (error) {
		// `fetch` rejects with a TypeError when nothing listens at the address.
		return error instanceof TypeError ? "refused" : "lost";
	} finally {
		signal.removeEventListener("abort", stop);
		attempt.abort();
	}
}

async function readEvents(
	platform: NoticePlatform,
	body: ReadableStream<Uint8Array>,
	listener: StreamListener,
	attempt: AbortController,
): Promise<void> {
	const parser = new EventParser();
	const reader = body.getReader();
	for (;;) {
		const heard = new AbortController();
		const silence = platform.pause(SILENCE_MS_MAX, heard.signal).then(() => "silent" as const);
		const piece = await Promise.race([reader.read(), silence]).finally(() => heard.abort());
		if (piece === "silent") {
			attempt.abort();
			void reader.cancel().catch(() => undefined);
			return;
		}
		if (piece.done) return;
		for (const event of parser.push(piece.value)) listener.onEvent(event);
	}
}

/** What an event says; null for a type that this page does not know. */
export function readNotice({ event, data }: ServerSentEvent): Notice | null {
	const value = parseObject(data);
	if (value === null) return null;
	const text = (name: string) => String(value[name] ?? "");
	switch (event) {
		case "world.changed":
		case "session.changed":
		case "run.changed":
			return { kind: event, ref: text("ref") };
		case "attention.changed":
			return { kind: event, count: Number(value.count ?? 0) };
		case "turn.appended":
		case "fs.attached":
			return { kind: event, contextId: text("context_id"), turnId: text("turn_id") };
		case "context.created":
			return { kind: event, contextId: text("context_id") };
		case "registry.put":
			return { kind: event, bundleId: text("bundle_id") };
		case "turn.lost":
			return { kind: "damage", of: "turn" };
		case "context.lost":
			return { kind: "damage", of: "context" };
		default:
			return null;
	}
}

function parseObject(data: string): Record<string, unknown> | null {
	try {
		const value: unknown = JSON.parse(data);
		return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
	} catch {
		return null;
	}
}

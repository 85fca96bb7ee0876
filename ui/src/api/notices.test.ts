import { describe, expect, test } from "vitest";
import type { Connection } from "./connection";
import { followNotices, type Notice, type NoticePlatform, readNotice, SILENCE_MS_MAX } from "./notices";

/** One answer of a fake server: a status, or the chunks of a stream, which then ends or stays open. */
type Answer = number | "refused" | { readonly chunks: readonly string[]; readonly staysOpen?: boolean };

/** Plays a script of answers and writes down what the stream said. Time passes only in pauses. */
async function play(answers: readonly Answer[]) {
	const end = new AbortController();
	const log: string[] = [];
	const asked: (string | null)[] = [];
	let now = 1000;
	let at = 0;
	const platform: NoticePlatform = {
		async open({ after }) {
			asked.push(after);
			const next = answers[at];
			at += 1;
			if (next === undefined) {
				end.abort();
				throw new DOMException("ended", "AbortError");
			}
			if (next === "refused") throw new TypeError("refused");
			if (typeof next === "number") return new Response(null, { status: next });
			return new Response(streamOf(next.chunks, next.staysOpen ?? false));
		},
		async pause(ms, signal) {
			// A silence passes only while nothing else can happen.
			if (ms === SILENCE_MS_MAX) await new Promise((resolve) => setTimeout(resolve, 20));
			if (!signal.aborted) now += ms;
		},
		now: () => now,
		random: () => 1,
	};
	const listener = {
		onNotice: (notice: Notice) => log.push(notice.kind),
		onConnection: (connection: Connection) => log.push(`is ${connection.state}`),
		onOpen: () => log.push("open"),
	};
	await followNotices(platform, listener, end.signal);
	return { log, asked };
}

function streamOf(chunks: readonly string[], staysOpen: boolean): ReadableStream<Uint8Array> {
	const encoder = new TextEncoder();
	return new ReadableStream({
		start(controller) {
			for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
			if (!staysOpen) controller.close();
		},
	});
}

const turn = (id: number) => `id: ${id}\nevent: turn.appended\ndata: {"context_id":"1","turn_id":"${id}"}\n\n`;

describe("the notice stream", () => {
	test("resumes behind the last event that came, and says that notices may be missing", async () => {
		const { log, asked } = await play([
			{ chunks: [turn(7), "event: run.cha", 'nged\ndata: {"ref":"run:x"}\n\n'] },
			{ chunks: [] },
		]);
		expect(asked).toEqual([null, "7", "7"]);
		expect(log).toEqual([
			"missed",
			"is connected",
			"open",
			"turn.appended",
			"run.changed",
			"is reconnecting",
			"missed",
			"is connected",
			"open",
			"is reconnecting",
		]);
	});

	test("begins anew where the server cannot resume", async () => {
		const { asked } = await play([{ chunks: [turn(7)] }, 409, { chunks: [] }]);
		expect(asked).toEqual([null, "7", null, null]);
	});

	test("a stream that is silent for too long is lost", async () => {
		const { log } = await play([{ chunks: [": open\n\n"], staysOpen: true }]);
		expect(log).toEqual(["missed", "is connected", "open", "is reconnecting"]);
	});

	test("signed out ends it", async () => {
		const { log, asked } = await play([401, { chunks: [] }]);
		expect(asked).toHaveLength(1);
		expect(log).toEqual(["is signed-out"]);
	});

	test("a server that is gone is called stopped, one that fails is not", async () => {
		const gone = await play(["refused", "refused", "refused", "refused", "refused"]);
		expect(gone.log.slice(2)).toEqual(["is reconnecting", "is stopped", "is stopped"]);
		const failing = await play([502, 502, 502, 502, 502]);
		expect(new Set(failing.log)).toEqual(new Set(["is reconnecting"]));
	});
});

test("an unknown event or broken data is no notice", () => {
	expect(readNotice({ id: "1", event: "moon.risen", data: "{}" })).toBeNull();
	expect(readNotice({ id: "1", event: "run.changed", data: "{" })).toBeNull();
	expect(readNotice({ id: "", event: "attention.changed", data: '{"count":3}' })).toEqual({
		kind: "attention.changed",
		count: 3,
	});
});

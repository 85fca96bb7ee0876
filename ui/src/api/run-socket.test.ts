import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type SocketLike, type SocketListener, WindowSocket } from "./run-socket";

class FakeSocket implements SocketLike {
	binaryType: BinaryType = "blob";
	onopen: (() => void) | null = null;
	onmessage: ((event: { readonly data: unknown }) => void) | null = null;
	onclose: ((event: { readonly code: number }) => void) | null = null;
	closedWith: number | null = null;

	constructor(readonly path: string) {}

	close(code?: number): void {
		this.closedWith = code ?? 1005;
	}
}

function setUp() {
	const sockets: FakeSocket[] = [];
	const gate = { isOpen: true };
	const open = (path: string) => {
		const socket = new FakeSocket(path);
		sockets.push(socket);
		return socket;
	};
	const socket = new WindowSocket({ open, canConnect: () => gate.isOpen, random: () => 1 });
	const last = () => {
		const newest = sockets.at(-1);
		if (newest === undefined) throw new Error("no socket was opened");
		return newest;
	};
	return { socket, sockets, last, gate };
}

function listen(log: string[], name = ""): SocketListener {
	return {
		onText: (text) => log.push(`${name}${text}`),
		onBytes: (bytes) => log.push(`${name}${bytes.byteLength} bytes`),
		onState: (state) => log.push(`${name}${state.state === "ended" ? state.reason : state.state}`),
		onRefused: () => log.push(`${name}refused`),
	};
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("the socket of a window", () => {
	test("resumes a run behind the last event that its listener has", () => {
		const { socket, sockets, last } = setUp();
		const log: string[] = [];
		let seq = 4;
		socket.follow({ kind: "run", runId: "r", since: () => seq }, listen(log));
		expect(last().path).toBe("/ws?runId=r&since=4");
		last().onopen?.();
		last().onmessage?.({ data: "event" });
		seq = 9;
		last().onclose?.({ code: 1006 });
		vi.advanceTimersByTime(249);
		expect(sockets).toHaveLength(1);
		vi.advanceTimersByTime(1);
		expect(last().path).toBe("/ws?runId=r&since=9");
		expect(log).toEqual(["connecting", "open", "event", "waiting", "connecting"]);
	});

	test("comes back at once when it was too slow", () => {
		const { socket, sockets, last } = setUp();
		socket.follow({ kind: "run", runId: "r", since: () => 1 }, listen([]));
		last().onopen?.();
		last().onclose?.({ code: 4008 });
		vi.advanceTimersByTime(0);
		expect(sockets).toHaveLength(2);
	});

	test.each([
		[4004, "run-deleted"],
		[4403, "not-shared"],
		[4404, "session-not-found"],
		[4410, "session-ended"],
	])("a close with %i ends it: %s", (code, reason) => {
		const { socket, sockets, last } = setUp();
		const log: string[] = [];
		socket.follow({ kind: "session", session: "s" }, listen(log));
		last().onopen?.();
		last().onclose?.({ code });
		vi.advanceTimersByTime(60_000);
		expect(sockets).toHaveLength(1);
		expect(log.at(-1)).toBe(reason);
	});

	test("pauses grow while the server refuses, and the listener is asked to find out", () => {
		const { socket, sockets, last } = setUp();
		const log: string[] = [];
		socket.follow({ kind: "run", runId: "r", since: () => 1 }, listen(log));
		const pauses = [250, 500, 1000, 2000, 4000, 5000, 5000];
		for (const [at, pause] of pauses.entries()) {
			last().onclose?.({ code: 1006 });
			vi.advanceTimersByTime(pause - 1);
			expect(sockets).toHaveLength(at + 1);
			vi.advanceTimersByTime(1);
			expect(sockets).toHaveLength(at + 2);
		}
		expect(log.filter((line) => line === "refused")).toHaveLength(pauses.length);
	});

	test("serves the target that was opened last, one at a time", () => {
		const { socket, sockets, last } = setUp();
		const log: string[] = [];
		const closeRun = socket.follow({ kind: "run", runId: "r", since: () => 3 }, listen(log, "run "));
		const run = last();
		run.onopen?.();
		const closeTerminal = socket.follow({ kind: "session", session: "a b" }, listen(log, "terminal "));
		expect(run.closedWith).toBe(1000);
		expect(last().path).toBe("/ws?session=a%20b");
		run.onmessage?.({ data: "late" });
		last().onopen?.();
		last().onmessage?.({ data: new ArrayBuffer(3) });
		closeTerminal();
		expect(last().path).toBe("/ws?runId=r&since=3");
		closeRun();
		expect(last().closedWith).toBe(1000);
		expect(sockets).toHaveLength(3);
		expect(log).not.toContain("run late");
		expect(log).toEqual([
			"run connecting",
			"run open",
			"run waiting",
			"terminal connecting",
			"terminal open",
			"terminal 3 bytes",
			"run connecting",
		]);
	});

	test("a terminal that has ended gives way to the run below it", () => {
		const { socket, last } = setUp();
		socket.follow({ kind: "run", runId: "r", since: () => 3 }, listen([]));
		socket.follow({ kind: "session", session: "s" }, listen([]));
		last().onclose?.({ code: 4410 });
		expect(last().path).toBe("/ws?runId=r&since=3");
	});

	test("waits while the window cannot connect", () => {
		const { socket, sockets, gate } = setUp();
		gate.isOpen = false;
		const log: string[] = [];
		socket.follow({ kind: "run", runId: "r", since: () => 1 }, listen(log));
		expect(sockets).toHaveLength(0);
		expect(log).toEqual(["waiting"]);
		gate.isOpen = true;
		socket.retryNow();
		expect(sockets).toHaveLength(1);
	});

	test("reconnect replaces a connection that may be dead", () => {
		const { socket, sockets, last } = setUp();
		socket.follow({ kind: "run", runId: "r", since: () => 1 }, listen([]));
		last().onopen?.();
		socket.reconnect();
		expect(sockets.map((each) => each.closedWith)).toEqual([1000, null]);
	});
});

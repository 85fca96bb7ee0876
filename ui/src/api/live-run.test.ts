import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { applyEvents, emptyRun, type RunEvent } from "../model/run";
import { createdRun, eventOf, newNode, RUN, uuid } from "../model/run-fixtures";
import type { Schema } from "../model/schema";
import { ApiError } from "./errors";
import { LiveRun, type LiveRunPlatform, LiveRuns } from "./live-run";
import type { SocketListener, SocketTarget } from "./run-socket";

const NODE = uuid(1);

function snapshotAt(seq: number): Schema<"RunView"> {
	const { run, nodes, edges, artifacts } = applyEvents(emptyRun(RUN), [createdRun()]);
	if (run === null) throw new Error("the run has no fields");
	return { ...run, nodes, edges, artifacts, lastSeq: seq };
}

/** A server and a window whose frames come when the test says so. */
function setUp(snapshots: (Schema<"RunView"> | ApiError)[]) {
	const followed: { target: SocketTarget; listener: SocketListener }[] = [];
	const frames: (() => void)[] = [];
	const platform: LiveRunPlatform = {
		async snapshot() {
			const next = snapshots.length > 1 ? snapshots.shift() : snapshots[0];
			if (next instanceof ApiError || next === undefined) throw next;
			return next;
		},
		approvals: async () => [],
		follow(target, listener) {
			followed.push({ target, listener });
			return () => undefined;
		},
		schedule(callback) {
			frames.push(callback);
			return () => void frames.splice(frames.indexOf(callback), 1);
		},
		now: () => 42,
	};
	const send = (event: RunEvent) => followed.at(-1)?.listener.onText(JSON.stringify(event));
	const since = () => {
		const target = followed.at(-1)?.target;
		return target?.kind === "run" ? target.since() : null;
	};
	return { platform, followed, frames, send, since };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

describe("a live run", () => {
	test("goes on from its snapshot, once a frame", async () => {
		const { platform, frames, send, since, followed } = setUp([snapshotAt(1)]);
		const live = new LiveRun(RUN, platform);
		expect(live.view()).toEqual({ status: "loading" });
		await settled();
		expect(since()).toBe(1);
		followed[0]?.listener.onState({ state: "open" });
		let renders = 0;
		const seen: number[] = [];
		live.subscribe(() => (renders += 1));
		live.subscribeEvents((events) => seen.push(events.length));
		send(eventOf(2, { type: "node.patch", nodeId: NODE, patch: newNode(NODE, "Worker") }));
		send(eventOf(3, { type: "node.patch", nodeId: NODE, patch: { status: "running" } }));
		// A reconnect before the frame must not ask for them again.
		expect(since()).toBe(3);
		expect([renders, frames.length]).toEqual([0, 1]);
		frames.shift()?.();
		expect([renders, seen]).toEqual([1, [2]]);
		expect(live.view()).toMatchObject({ status: "shown", isLive: true, state: { lastSeq: 3 } });
	});

	test("says that it is not live while the socket is away, and keeps what it shows", async () => {
		const { platform, followed } = setUp([snapshotAt(1)]);
		const live = new LiveRun(RUN, platform);
		await settled();
		followed[0]?.listener.onState({ state: "open" });
		followed[0]?.listener.onState({ state: "waiting" });
		expect(live.view()).toMatchObject({ status: "shown", isLive: false, asOf: 42 });
	});

	test("begins anew from a fresh snapshot when the server refuses to resume", async () => {
		const { platform, followed, since } = setUp([snapshotAt(50), snapshotAt(7)]);
		new LiveRun(RUN, platform);
		await settled();
		expect(since()).toBe(50);
		followed[0]?.listener.onRefused();
		await settled();
		expect(since()).toBe(7);
	});

	test("a run that is gone stays on screen as deleted", async () => {
		const { platform, followed } = setUp([snapshotAt(1), new ApiError(404, "NotFound", "no such run")]);
		const live = new LiveRun(RUN, platform);
		await settled();
		followed[0]?.listener.onRefused();
		await settled();
		expect(live.view()).toMatchObject({ status: "shown", state: { isDeleted: true } });
	});

	test("a run that cannot be fetched says why, and can be tried again", async () => {
		const { platform } = setUp([new ApiError(404, "NotFound", "no such run"), snapshotAt(1)]);
		const live = new LiveRun(RUN, platform);
		await settled();
		expect(live.view()).toMatchObject({ status: "failed" });
		live.retry();
		await settled();
		expect(live.view()).toMatchObject({ status: "shown" });
	});
});

describe("live runs", () => {
	beforeEach(() => void vi.useFakeTimers());
	afterEach(() => void vi.useRealTimers());

	test("are shared, and closed a moment after the last user", () => {
		const { platform } = setUp([snapshotAt(1)]);
		const runs = new LiveRuns(platform);
		const first = runs.acquire(RUN);
		expect(runs.acquire(RUN)).toBe(first);
		runs.release(RUN);
		runs.release(RUN);
		vi.advanceTimersByTime(2_000);
		expect(runs.peek(RUN)).toBe(first);
		vi.advanceTimersByTime(10_000);
		expect(runs.peek(RUN)).not.toBe(first);
	});
});

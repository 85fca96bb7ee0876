/** Pauses, bounds and ids. */

import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { orAborted } from "../../src/core/abort.js";
import { Backoff } from "../../src/core/backoff.js";
import { timeLimit } from "../../src/core/time-limit.js";
import * as text from "../../src/http/ids.js";
import { GatewayClient } from "../../src/http/index.js";
import { parseAddress } from "../../src/node/dial.js";
import { Gate } from "../../src/node/gate.js";
import * as numeric from "../../src/node/ids.js";
import { connect } from "../../src/node/index.js";
import { resolveOptions } from "../../src/node/options.js";
import { type Waiter, Waiters } from "../../src/node/waiters.js";
import { Slab } from "../../src/wire/slab.js";

describe("pauses", () => {
	const policy = { attemptsMax: 5, firstMs: 100, longestMs: 500 };

	it.each([
		[1, [100, 200, 400, 500, 500]],
		[0, [50, 100, 200, 250, 250]],
	])("double up to the longest and end, drawn at %d", (random, expected) => {
		const backoff = new Backoff(policy, () => random);
		const pauses = Array.from({ length: 6 }, () => backoff.next());
		expect(pauses).toEqual([...expected, undefined]);
		backoff.reset();
		expect(backoff.next()).toBe(expected[0]);
	});

	it("begin anew after what was tried had lasted, and only then", () => {
		for (const [longestMs, expected] of [
			[0, 0],
			[60_000, undefined],
		] as const) {
			const backoff = new Backoff({ attemptsMax: 1, firstMs: 0, longestMs });
			backoff.next();
			backoff.accepted();
			expect(backoff.next()).toBe(expected);
		}
	});

	it("end with the signal and leave no listener", async () => {
		const controller = new AbortController();
		const pausing = new Backoff({ attemptsMax: 1, firstMs: 60_000, longestMs: 60_000 }).pause(controller.signal);
		controller.abort(new Error("enough"));
		await expect(pausing).rejects.toThrow("enough");
		expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
		expect(await new Backoff({ attemptsMax: 0, firstMs: 1, longestMs: 1 }).pause()).toBe(false);
	});

	it("of promises end with the signal, or leave it alone", async () => {
		const controller = new AbortController();
		expect(await orAborted(Promise.resolve(1), controller.signal)).toBe(1);
		expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
		const never = orAborted(new Promise(() => undefined), controller.signal);
		controller.abort(new Error("enough"));
		await expect(never).rejects.toThrow("enough");
	});
});

describe("a time-out", () => {
	it.each([
		[1, 1],
		[0.5, 0.5],
		[2 ** 31, 2 ** 31 - 1],
		[Infinity, 2 ** 31 - 1],
	])("of %d ms waits for %d", (asked, waited) => {
		expect(timeLimit("some time", asked)).toBe(waited);
		const resolved = resolveOptions({ connectTimeoutMs: asked, answerTimeoutMs: asked });
		expect(resolved).toMatchObject({ connectTimeoutMs: waited, answerTimeoutMs: waited });
	});

	it.each([0, -1, -Infinity, Number.NaN])("of %d ms is refused at once, by name", async (ms) => {
		for (const name of ["connectTimeoutMs", "answerTimeoutMs"]) {
			await expect(connect("127.0.0.1:1", { [name]: ms })).rejects.toThrow(new RegExp(`^${name} must be a positive`));
		}
		expect(() => new GatewayClient({ baseUrl: "http://127.0.0.1:1", timeoutMs: ms })).toThrow(/^timeoutMs must be/);
	});
});

describe("who waits", () => {
	const somebody = () => ({ isReply: true, onFrame: () => undefined, onLost: () => undefined });

	it("is found under an id of its own, however many wait and however long one does", () => {
		const waiters = new Waiters();
		const expected = new Map<number, Waiter>();
		let last = 0;
		for (let round = 0; round < 1000; round += 1) {
			const id = waiters.nextId();
			expect(waiters.nextId()).toBe(id);
			expect(id).toBeGreaterThan(last);
			expect(waiters.get(id)).toBeNull();
			last = id;
			expected.set(id, somebody());
			waiters.set(id, expected.get(id) as Waiter);
			// Every seventh stays for ever, as subscriptions do.
			for (const old of [id - 1, id - 40]) {
				if (old % 7 !== 0) expect(waiters.delete(old)).toBe(expected.delete(old));
			}
			if (round % 50 === 0) for (const [each, waiter] of expected) expect(waiters.get(each)).toBe(waiter);
		}
		expect(expected.size).toBeGreaterThan(100);
		expect(waiters.takeAll()).toEqual([...expected.values()]);
		expect(waiters.takeAll()).toEqual([]);
		expect(waiters.nextId()).toBeGreaterThan(last);
	});

	it("can give its place to another, and is not found under an id that has the same place", () => {
		const waiters = new Waiters();
		const [first, second] = [somebody(), somebody()];
		const id = waiters.nextId();
		waiters.set(id, first);
		waiters.set(id, second);
		expect(waiters.get(id)).toBe(second);
		for (const other of [0, id + 64, id + 2 ** 32, 2 ** 64 - 1]) {
			expect(waiters.get(other)).toBeNull();
			expect(waiters.delete(other)).toBe(false);
		}
		expect(waiters.delete(id)).toBe(true);
		expect(waiters.delete(id)).toBe(false);
	});
});

describe("a slab", () => {
	it("gives every frame bytes that nobody else has", () => {
		const slab = new Slab();
		const sizes = [0, 1, 32_767, 32_768, 70_000, 300_000, 524_288, 524_289, 70_000, 70_000, 2 << 20, 40_000];
		const taken = sizes.map((size, index) => slab.take(size).fill(index));
		taken.forEach((bytes, index) => {
			expect(bytes.length).toBe(sizes[index]);
			expect(bytes.every((byte) => byte === index)).toBe(true);
		});
	});

	it("does not let a small frame share memory with a large one", () => {
		const slab = new Slab();
		const large = slab.take(70_000);
		expect(slab.take(70_000).buffer).toBe(large.buffer);
		for (const size of [1000, 32_767, 600_000]) expect(slab.take(size).buffer).not.toBe(large.buffer);
	});
});

describe("a gate", () => {
	it("admits up to its bounds, then in line, and one that is too large alone", () => {
		const gate = new Gate(2, 100);
		const admitted: string[] = [];
		expect([gate.tryEnter(10), gate.tryEnter(10), gate.tryEnter(10)]).toEqual([true, true, false]);
		gate.lineUp(1000, () => admitted.push("large"));
		const giveUp = gate.lineUp(10, () => admitted.push("gives up"));
		gate.lineUp(10, () => admitted.push("small"));
		giveUp();
		gate.leave(10);
		expect(admitted).toEqual([]);
		gate.leave(10);
		expect(admitted).toEqual(["large"]);
		gate.leave(1000);
		expect(admitted).toEqual(["large", "small"]);
	});
});

describe("ids", () => {
	const legal: [bigint | number | string, bigint][] = [
		[1, 1n],
		["42", 42n],
		[2n ** 64n - 1n, 2n ** 64n - 1n],
		["18446744073709551615", 2n ** 64n - 1n],
	];
	it.each(legal)("%s is one", (value, id) => {
		expect([numeric.contextId(value), numeric.turnId(value)]).toEqual([id, id]);
		expect([text.contextId(value), text.turnId(value)]).toEqual([String(id), String(id)]);
	});

	it.each([0, -1, 1.5, 2 ** 53, 0n, -1n, 2n ** 64n, "", "0", "01", "-1", "1e3", "18446744073709551616"])(
		"%s is none",
		(value) => {
			for (const make of [numeric.contextId, numeric.turnId, text.contextId, text.turnId]) {
				expect(() => make(value)).toThrow(TypeError);
			}
		},
	);

	it.each([
		["127.0.0.1:9009", { host: "127.0.0.1", port: 9009 }],
		["[::1]:1", { host: "::1", port: 1 }],
		["localhost:65535", { host: "localhost", port: 65_535 }],
	])("%s is an address", (address, expected) => {
		expect(parseAddress(address)).toEqual(expected);
	});

	it.each(["", "localhost", "localhost:", ":1", "a:b:1", "localhost:99999"])("%j is no address", (address) => {
		expect(() => parseAddress(address)).toThrow(TypeError);
	});
});

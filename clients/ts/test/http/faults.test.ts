/** What the gateway client does when the server dies, is slow, sends too much, or the wrong thing. */

import { getEventListeners, once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ProtocolError, TurnkeepError } from "../../src/core/errors.js";
import { contextId, GatewayClient, type GatewayOptions } from "../../src/http/index.js";
import { EventParser } from "../../src/http/sse.js";
import { TestServer } from "../server.js";

const CONTEXT = contextId(7);
const QUICK = { attemptsMax: 4, firstMs: 1, longestMs: 5 };
const PATIENT = { attemptsMax: 1000, firstMs: 5, longestMs: 100 };

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

async function fake(
	onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Server & { url: string }> {
	const server = createServer(onRequest);
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	ends.push(async () => {
		server.closeAllConnections();
		server.close();
		await once(server, "close");
	});
	return Object.assign(server, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

function client(baseUrl: string, options: Partial<GatewayOptions> = {}): GatewayClient {
	return new GatewayClient({ baseUrl, retry: QUICK, ...options });
}

function json(response: ServerResponse, status: number, body: unknown): void {
	response.writeHead(status, { "content-type": "application/json" });
	response.end(JSON.stringify(body));
}

function refuse(response: ServerResponse, status: number): void {
	json(response, status, { error: { code: "Word", message: "text", details: { why: 1 } } });
}

describe("a list of contexts", () => {
	it("that leads in a circle is refused", async () => {
		const next: Record<string, string> = { "": "a", a: "b", b: "a" };
		const server = await fake((request, response) => {
			const cursor = new URL(request.url ?? "", "http://fake").searchParams.get("cursor") ?? "";
			json(response, 200, { contexts: [{ context_id: cursor }], next_cursor: next[cursor] });
		});
		const seen: string[] = [];
		const listing = async () => {
			for await (const context of client(server.url).allContexts()) seen.push(context.context_id);
		};
		await expect(listing()).rejects.toMatchObject({ name: "ProtocolError", fault: "bad_value" });
		expect(seen).toEqual(["", "a", "b"]);
	});
});

describe("a request", () => {
	it.each([429, 503, 507])("refused with %i is tried again", async (status) => {
		let asked = 0;
		const server = await fake((_request, response) => {
			asked += 1;
			if (asked < 3) refuse(response, status);
			else json(response, 200, { context_id: "7" });
		});
		expect(await client(server.url).context(CONTEXT)).toEqual({ context_id: "7" });
		expect(asked).toBe(3);
	});

	it.each([400, 404, 409, 500])("refused with %i is not", async (status) => {
		let asked = 0;
		const server = await fake((_request, response) => {
			asked += 1;
			refuse(response, status);
		});
		await expect(client(server.url).context(CONTEXT)).rejects.toMatchObject({
			name: "ServerError",
			status,
			code: "Word",
			details: { why: 1 },
			isRetryable: false,
		});
		expect(asked).toBe(1);
	});

	it("whose answer is lost is repeated with a key, and only then", async () => {
		let asked = 0;
		const server = await fake((request, response) => {
			asked += 1;
			if (asked <= 2) request.socket.destroy();
			else json(response, 201, { turn_id: "1" });
		});
		const turn = { type_id: "", payload_b64: "gA==" };
		await expect(client(server.url).append(CONTEXT, turn)).rejects.toMatchObject({ name: "OutcomeUnknownError" });
		expect(asked).toBe(1);
		expect(await client(server.url).append(CONTEXT, { ...turn, idempotency_key: "k" })).toMatchObject({ turn_id: "1" });
		expect(asked).toBe(3);
	});

	it.each([200, 409])("answered with %i and JSON that is no object fails as what it is", async (status) => {
		let asked = 0;
		const server = await fake((_request, response) => {
			asked += 1;
			json(response, status, null);
		});
		const name = status === 200 ? "ProtocolError" : "ServerError";
		await expect(client(server.url).context(CONTEXT)).rejects.toMatchObject({ name, isRetryable: false });
		expect(asked).toBe(1);
	});

	it("for a history that does not lead back is the last one", async () => {
		const pages = ["10", "9", "9"];
		const server = await fake((_request, response) =>
			json(response, 200, { turns: [], next_before_turn_id: pages.shift() }),
		);
		const reading = client(server.url).history(CONTEXT).next();
		await expect(reading).rejects.toMatchObject({ name: "ProtocolError", message: "turn 9 is no ancestor of turn 9" });
	});

	it("publishes a bundle only if the gateway says so, and not a login page", async () => {
		const server = await fake((_request, response) => response.end("hello"));
		const bundle = { registry_version: 1, bundle_id: "b", types: {} };
		await expect(client(server.url).putBundle(bundle)).rejects.toMatchObject({ name: "ProtocolError" });
	});

	it("to where nobody listens, or to no address, fails", async () => {
		const nobody = client("http://127.0.0.1:1", { retry: { ...QUICK, attemptsMax: 0 } });
		await expect(nobody.stats()).rejects.toBeInstanceOf(TurnkeepError);
		expect(() => client("nonsense")).toThrow(TypeError);
	});

	it("that is not answered in time is given up", async () => {
		const server = await fake(() => undefined);
		const hasty = client(server.url, { timeoutMs: 30, retry: { ...QUICK, attemptsMax: 1 } });
		await expect(hasty.stats()).rejects.toMatchObject({ name: "LostError", reason: "silent" });
	});

	it.each([
		["more than the bound", "x".repeat(2000), "frame_too_long"],
		["what is no JSON", "<html>", "bad_value"],
		["what is no UTF-8", Buffer.of(0x22, 0xff, 0x22), "bad_value"],
	])("answered with %s is refused", async (_name, body, fault) => {
		const server = await fake((_request, response) => response.end(body));
		const bounded = client(server.url, { answerBytesMax: 1000 });
		await expect(bounded.stats()).rejects.toMatchObject({ name: "ProtocolError", fault });
	});

	it("refused without a body of ours is an error with its status", async () => {
		const server = await fake((_request, response) => {
			response.writeHead(418);
			response.end("not json");
		});
		await expect(client(server.url).stats()).rejects.toMatchObject({ status: 418, code: "Unknown" });
	});

	it("that is aborted rejects with the reason, and leaves no listener and no connection", async () => {
		const controller = new AbortController();
		const reason = new Error("enough");
		const gone: Promise<unknown>[] = [];
		const server = await fake((request) => {
			gone.push(once(request.socket, "close"));
			controller.abort(reason);
		});
		await expect(client(server.url).stats({ signal: controller.signal })).rejects.toBe(reason);
		expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
		await Promise.all(gone);
		expect(gone).toHaveLength(1);
		await expect(client(server.url).stats({ signal: controller.signal })).rejects.toBe(reason);
	});
});

describe("event streams", () => {
	const event = (id: number, kind = "turn.appended") => `id: ${id}\nevent: ${kind}\ndata: {"turn_id":"${id}"}\n\n`;

	/** Positions that a stream of ten events gives when its server hangs up after every third. */
	async function positions(
		after: string | undefined,
		write: (response: ServerResponse, text: string) => void,
	): Promise<string[]> {
		const server = await fake((request, response) => {
			if (request.url === "/v1/stats") return json(response, 200, { events: 5 });
			response.writeHead(200, { "content-type": "text/event-stream" });
			const from = Number(request.headers["last-event-id"]) + 1;
			for (let id = from; id <= Math.min(10, from + 2); id += 1) write(response, event(id));
			if (from + 2 < 10) response.end();
		});
		const seen: string[] = [];
		for await (const { position } of client(server.url).events(after === undefined ? {} : { after })) {
			seen.push(position);
			if (position === "10") break;
		}
		return seen;
	}

	it("resume behind the last event, with neither gap nor double", async () => {
		const all = Array.from({ length: 10 }, (_, index) => String(index + 1));
		expect(await positions("0", (response, text) => response.write(text))).toEqual(all);
	});

	it("of what is new begin at the end of the feed", async () => {
		expect(await positions(undefined, (response, text) => response.write(text))).toEqual(["6", "7", "8", "9", "10"]);
	});

	it("survive a server that is killed and restarted", async () => {
		const server = await TestServer.start();
		ends.push(() => server.stop());
		const gateway = client(server.url, { retry: PATIENT });
		const { context_id: id } = await gateway.createContext();
		const count = 60;
		const following = (async () => {
			const seen: string[] = [];
			for await (const { kind, data } of gateway.events({ contextId: id, after: "0" })) {
				if (kind === "turn.appended") seen.push(data.turn_id);
				if (seen.length === count) break;
			}
			return seen;
		})();
		const appended: string[] = [];
		for (let number = 0; number < count; number += 1) {
			if (number % 25 === 24) {
				await server.kill();
				await server.restart();
			}
			const turn = { type_id: "", payload_b64: "gA==", idempotency_key: `key ${number}` };
			appended.push((await gateway.append(id, turn)).turn_id);
		}
		expect(await following).toEqual(appended);
		expect(new Set(appended).size).toBe(count);
	}, 180_000);

	it("skip kinds that they do not know, pings and comments", async () => {
		const server = await fake((_request, response) => {
			response.writeHead(200, { "content-type": "text/event-stream" });
			response.write(`: open\n\n${event(1, "of.another.room")}event: notice\ndata: no number\n\n: ping\n\n${event(2)}`);
		});
		for await (const { position } of client(server.url).events({ after: "0" })) {
			expect(position).toBe("2");
			break;
		}
	});

	it("that fall silent are opened again", async () => {
		let opened = 0;
		const server = await fake((_request, response) => {
			opened += 1;
			response.writeHead(200, { "content-type": "text/event-stream" });
			response.flushHeaders();
			if (opened === 2) response.write(event(1));
		});
		// The time-out and the pause before the next try pass only when the test says so. An immediate runs when the
		// client has set its timer.
		vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
		ends.push(() => vi.useRealTimers());
		const timeoutMs = 1000;
		const pass = (ms: number) => setImmediate(() => vi.advanceTimersByTime(ms));
		const following = client(server.url, { timeoutMs }).events({
			after: "0",
			onOpen: () => opened === 1 && pass(timeoutMs),
			onClose: () => opened === 1 && pass(QUICK.longestMs),
		});
		for await (const { position } of following) {
			expect(position).toBe("1");
			break;
		}
		expect(opened).toBe(2);
	});

	it("that are aborted, or left, leave no listener and no connection", async () => {
		for (const leave of ["abort", "break"] as const) {
			const controller = new AbortController();
			const reason = new Error("enough");
			const gone: Promise<unknown>[] = [];
			const server = await fake((request, response) => {
				gone.push(once(request.socket, "close"));
				response.writeHead(200, { "content-type": "text/event-stream" });
				response.write(event(1));
			});
			const following = (async () => {
				for await (const _ of client(server.url).events({ after: "0", signal: controller.signal })) {
					if (leave === "break") return "left";
					setImmediate(() => controller.abort(reason));
				}
				return "ended";
			})();
			if (leave === "abort") await expect(following).rejects.toBe(reason);
			else expect(await following).toBe("left");
			expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
			await Promise.all(gone);
			expect(gone).toHaveLength(1);
		}
	});

	it("that never come outlive any number of losses, which count only in a row", async () => {
		let opened = 0;
		const server = await fake((_request, response) => {
			opened += 1;
			response.writeHead(200, { "content-type": "text/event-stream" });
			if (opened <= 20) response.end(": ping\n\n");
			else response.write(event(1));
		});
		const retry = { attemptsMax: 2, firstMs: 0, longestMs: 0 };
		for await (const { position } of client(server.url, { retry }).events({ after: "0" })) {
			expect(position).toBe("1");
			break;
		}
	});

	it("that cannot be resumed say so", async () => {
		const server = await fake((_request, response) => refuse(response, 409));
		const following = client(server.url).events({ after: "9" });
		await expect(following.next()).rejects.toMatchObject({ status: 409 });
	});
});

describe("an event parser", () => {
	const stream =
		'id: 1\r\nevent: a\r\ndata: é\r\ndata: two\r\n\r\n:comment\n\nid:2\ndata\n\ndata: {"x":1}\r\rretry: 5\n\nid: 9\n\n';
	const expected = [
		{ id: "1", event: "a", data: "é\ntwo" },
		{ id: "2", event: "message", data: "" },
		{ id: "2", event: "message", data: '{"x":1}' },
	];

	it("gives the same events however the bytes are cut", () => {
		const bytes = Buffer.from(stream);
		for (let step = 1; step <= bytes.length; step += 1) {
			const parser = new EventParser();
			const seen = [];
			for (let at = 0; at < bytes.length; at += step) seen.push(...parser.push(bytes.subarray(at, at + step)));
			expect(seen, `pieces of ${step}`).toEqual(expected);
		}
	});

	it.each([
		["line", `data: ${"x".repeat(64 << 10)}`],
		["event of many lines", "data: x\n".repeat(8 << 10)],
	])("refuses a %s without end", (_name, piece) => {
		const parser = new EventParser();
		const pushAll = () => {
			for (let round = 0; round < 40; round += 1) parser.push(Buffer.from(piece));
		};
		expect(pushAll).toThrow(ProtocolError);
	});
});

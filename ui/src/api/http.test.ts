import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { answerRequests } from "../../test/render";
import { connectionStore, isOutdated, noteVersion, setConnection } from "./connection";
import { ApiError, errorWords, NoAnswerError } from "./errors";
import { answer, api, requestJson } from "./http";
import { idempotent, newIdempotencyKey } from "./idempotency";
import { readPreferences } from "./preferences";

beforeEach(() => setConnection({ state: "connected" }));
afterEach(() => void vi.unstubAllGlobals());

const ID = "6f0a2d0e-8a3b-4c5d-9e1f-001122334455";

describe("requests", () => {
	test("parameters are encoded, keys are sent", async () => {
		const { requests } = answerRequests({
			[`POST /api/runs/${ID}/chat`]: { messageId: ID },
			"GET /v1/refs/artifact%3A%2F%2Fx%23a%2Fb%3A3/why": { ref: "x", chain: [], complete: true },
		});
		const key = newIdempotencyKey();
		const options = { params: { path: { run_id: ID } }, body: { content: "hi" }, headers: idempotent(key) };
		expect(await answer(api.POST("/api/runs/{run_id}/chat", options))).toEqual({ messageId: ID });
		expect(requests[0]?.headers.get("idempotency-key")).toBe(key);
		const why = api.GET("/v1/refs/{ref}/why", { params: { path: { ref: "artifact://x#a/b:3" } } });
		expect((await answer(why)).complete).toBe(true);
	});

	test("an error of the server is thrown with its code", async () => {
		answerRequests({});
		const failed = answer(api.GET("/v1/worlds"));
		await expect(failed).rejects.toMatchObject({ status: 404, code: "NotFound", message: "/v1/worlds does not exist" });
		await expect(requestJson("/nothing")).rejects.toBeInstanceOf(ApiError);
	});

	test("an error without a body is an error all the same", async () => {
		answerRequests({ "GET /v1/worlds": new Response("bad gateway", { status: 502 }) });
		await expect(answer(api.GET("/v1/worlds"))).rejects.toMatchObject({ status: 502, code: "Unknown" });
	});

	test("401 signs the window out", async () => {
		answerRequests({
			"GET /v1/worlds": Response.json({ error: { code: "Unauthorized", message: "no" } }, { status: 401 }),
		});
		await expect(answer(api.GET("/v1/worlds"))).rejects.toBeInstanceOf(ApiError);
		expect(connectionStore.getState().connection.state).toBe("signed-out");
	});

	test("a lost answer says whether something may have happened", async () => {
		vi.stubGlobal("fetch", () => Promise.reject(new TypeError("refused")));
		await expect(requestJson("/v1/worlds", { method: "POST", body: {} })).rejects.toMatchObject({ isWrite: true });
		await expect(requestJson("/v1/worlds")).rejects.toBeInstanceOf(NoAnswerError);
	});

	test("a request that was given up is no lost answer", async () => {
		const { signal } = Object.assign(new AbortController(), {});
		vi.stubGlobal("fetch", () => Promise.reject(new DOMException("gone", "AbortError")));
		const given = new AbortController();
		given.abort();
		expect(signal.aborted).toBe(false);
		await expect(requestJson("/v1/worlds", { signal: given.signal })).rejects.toMatchObject({ name: "AbortError" });
	});
});

test("an error is said with what to do", () => {
	expect(errorWords(new ApiError(404, "NotFound", "context 12 does not exist"))).toEqual({
		what: "Context 12 does not exist.",
		hint: "It may have been deleted.",
		code: "404 NotFound",
	});
	expect(errorWords(new ApiError(409, "Conflict", "src/a.ts was changed")).what).toBe("src/a.ts was changed.");
	expect(errorWords(new NoAnswerError(true)).hint).toContain("Trying again is safe");
});

test("another version of the server makes the page outdated", () => {
	noteVersion("1.0.0");
	expect(isOutdated(connectionStore.getState())).toBe(false);
	noteVersion("1.1.0");
	expect(isOutdated(connectionStore.getState())).toBe(true);
});

test("stored preferences that do not fit get their defaults", () => {
	for (const stored of [null, "{", "null", "[]", '{"theme":"pink","letters":"yes"}']) {
		expect(readPreferences(stored)).toEqual({ theme: "system", letters: true });
	}
	expect(readPreferences('{"theme":"dark","letters":false}')).toEqual({ theme: "dark", letters: false });
});

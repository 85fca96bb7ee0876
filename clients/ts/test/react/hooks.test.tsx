// @vitest-environment happy-dom

/** The hooks in a document, against a real server. */

import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import { type ReactNode, StrictMode } from "react";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type ContextId, contextId, GatewayClient, type TurnId } from "../../src/http/index.js";
import {
	TurnkeepProvider,
	type UseTurns,
	type UseTurnsOptions,
	useContextInfo,
	useTurns,
	useTypeDescriptor,
} from "../../src/react/index.js";
import { TestServer } from "../server.js";

const TYPE = { type_id: "test.Note", type_version: 1 };
const WAIT = { timeout: 60_000, interval: 10 };

let server: TestServer;
let open = 0;

/** The document's own fetch, which knows CORS; counts the requests that are under way, streams among them. */
async function countingFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
	open += 1;
	let isOpen = true;
	const close = () => {
		if (isOpen) open -= 1;
		isOpen = false;
	};
	init?.signal?.addEventListener("abort", close, { once: true });
	try {
		const response = await fetch(input, init);
		const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
		if (!isStream) close();
		return response;
	} catch (error) {
		close();
		throw error;
	}
}

let client: GatewayClient;

beforeAll(async () => {
	// The document reports every failed request, and some tests are about failing.
	vi.spyOn(process.stderr, "write").mockReturnValue(true);
	server = await TestServer.start({ flags: ["--allow-origin", location.origin] });
	client = new GatewayClient({
		baseUrl: server.url,
		fetch: countingFetch,
		retry: { attemptsMax: 1000, firstMs: 5, longestMs: 50 },
	});
	await client.putBundle({
		registry_version: 1,
		bundle_id: "notes",
		types: { "test.Note": { versions: { 1: { fields: { 1: { name: "text", type: "string" } } } } } },
	});
});

afterEach(async () => {
	cleanup();
	await waitFor(() => expect(open).toBe(0), WAIT);
});

afterAll(async () => {
	vi.restoreAllMocks();
	await server?.stop();
});

function wrapper({ children }: { children: ReactNode }) {
	return <TurnkeepProvider client={client}>{children}</TurnkeepProvider>;
}

function strictWrapper({ children }: { children: ReactNode }) {
	return <StrictMode>{wrapper({ children })}</StrictMode>;
}

async function append(id: ContextId, text: string, parent?: TurnId): Promise<TurnId> {
	const turn = { ...TYPE, data: { text }, ...(parent === undefined ? {} : { parent_turn_id: parent }) };
	return (await client.append(id, turn)).turn_id;
}

async function contextWith(count: number): Promise<ContextId> {
	const { context_id: id } = await client.createContext();
	for (let number = 0; number < count; number += 1) await append(id, `${number}`);
	return id;
}

function texts({ turns }: UseTurns): unknown[] {
	return turns.map((turn) => turn.data?.text);
}

function numbers(from: number, to: number): string[] {
	return Array.from({ length: to - from }, (_, index) => `${from + index}`);
}

describe("useTurns", () => {
	it("gives the newest page, older ones on demand, and says when there are none left", async () => {
		const id = await contextWith(7);
		const { result } = renderHook(() => useTurns(id, { pageTurns: 3 }), { wrapper });
		expect(result.current).toMatchObject({ status: "loading", turns: [] });
		await waitFor(() => expect(texts(result.current)).toEqual(numbers(4, 7)), WAIT);
		expect(result.current).toMatchObject({ status: "ready", hasOlder: true });
		act(() => {
			result.current.loadOlder();
			result.current.loadOlder();
		});
		await waitFor(() => expect(texts(result.current)).toEqual(numbers(1, 7)), WAIT);
		act(() => result.current.loadOlder());
		await waitFor(() => expect(texts(result.current)).toEqual(numbers(0, 7)), WAIT);
		expect(result.current.hasOlder).toBe(false);
		act(() => result.current.loadOlder());
		expect(result.current.isLoadingOlder).toBe(false);
	});

	it.each([
		["plainly", wrapper],
		["in StrictMode", strictWrapper],
	])("follows what is appended, without doubles, %s", async (_name, around) => {
		const id = await contextWith(2);
		const seen: unknown[][] = [];
		const { result } = renderHook(
			() => {
				const turns = useTurns(id, { pageTurns: 3 });
				seen.push(texts(turns));
				return turns;
			},
			{ wrapper: around },
		);
		await waitFor(() => expect(result.current).toMatchObject({ status: "ready", isLive: true }), WAIT);
		await Promise.all(numbers(2, 12).map((text) => append(id, text)));
		await waitFor(() => expect(result.current.turns).toHaveLength(12), WAIT);
		for (const shown of seen) expect(new Set(shown).size).toBe(shown.length);
		const ids = result.current.turns.map((turn) => BigInt(turn.turn_id));
		expect(ids).toEqual(ids.toSorted((a, b) => Number(a - b)));
	});

	it("follows a head that moves to another branch", async () => {
		const id = await contextWith(3);
		const { result } = renderHook(() => useTurns(id), { wrapper });
		await waitFor(() => expect(result.current).toMatchObject({ status: "ready", isLive: true }), WAIT);
		await append(id, "branch", result.current.turns[0]?.turn_id);
		await waitFor(() => expect(texts(result.current)).toEqual(["0", "branch"]), WAIT);
	});

	it("catches up after the server was gone", async () => {
		const id = await contextWith(1);
		const { result } = renderHook(() => useTurns(id), { wrapper });
		await waitFor(() => expect(result.current).toMatchObject({ status: "ready", isLive: true }), WAIT);
		await server.kill();
		await waitFor(() => expect(result.current.isLive).toBe(false), WAIT);
		await server.restart();
		await append(id, "after");
		await waitFor(() => expect(texts(result.current)).toEqual(["0", "after"]), WAIT);
	});

	it("stays still when it is not to be live, and takes view options", async () => {
		const id = await contextWith(1);
		const { result } = renderHook(() => useTurns(id, { live: false, view: "raw" }), { wrapper });
		await waitFor(() => expect(result.current.status).toBe("ready"), WAIT);
		expect(result.current).toMatchObject({ isLive: false, turns: [{ bytes_b64: expect.any(String) }] });
	});

	it("begins anew with another context or other options, and not with equal ones", async () => {
		const [one, two] = [await contextWith(1), await contextWith(2)];
		const { result, rerender } = renderHook(
			({ id, view }: { id: ContextId; view: UseTurnsOptions["view"] }) => useTurns(id, { ...(view && { view }) }),
			{
				wrapper,
				initialProps: { id: one, view: undefined as UseTurnsOptions["view"] },
			},
		);
		await waitFor(() => expect(result.current).toMatchObject({ status: "ready", isLive: true }), WAIT);
		const before = result.current;
		rerender({ id: one, view: undefined });
		expect(result.current).toBe(before);
		rerender({ id: two, view: undefined });
		await waitFor(() => expect(texts(result.current)).toEqual(["0", "1"]), WAIT);
		rerender({ id: two, view: "raw" });
		await waitFor(() => expect(result.current.turns[1]?.bytes_b64).toBeDefined(), WAIT);
	});

	it("says what is wrong", async () => {
		const { result } = renderHook(() => useTurns(contextId(999_999)), { wrapper });
		await waitFor(
			() => expect(result.current).toMatchObject({ status: "error", error: { status: 404 }, turns: [] }),
			WAIT,
		);
	});
});

describe("useContextInfo", () => {
	it("follows the head", async () => {
		const id = await contextWith(1);
		const { result } = renderHook(() => useContextInfo(id), { wrapper: strictWrapper });
		expect(result.current).toEqual({ data: undefined, isLoading: true, error: null });
		await waitFor(() => expect(result.current.data).toMatchObject({ context_id: id, head_depth: 0 }), WAIT);
		const head = await append(id, "next");
		await waitFor(() => expect(result.current.data).toMatchObject({ head_turn_id: head, head_depth: 1 }), WAIT);
	});

	it("shares its stream with the other hooks of its context", async () => {
		const id = await contextWith(1);
		const { result } = renderHook(() => [useTurns(id), useContextInfo(id), useTurns(id, { pageTurns: 2 })] as const, {
			wrapper,
		});
		await waitFor(() => expect(result.current[0].isLive && result.current[2].isLive).toBe(true), WAIT);
		await waitFor(() => expect(open).toBe(1), WAIT);
	});
});

describe("useTypeDescriptor", () => {
	it("gives a type, or why there is none", async () => {
		const { result } = renderHook(() => [useTypeDescriptor("test.Note", 1), useTypeDescriptor("nobody", 1)] as const, {
			wrapper,
		});
		await waitFor(() => expect(result.current[0].data?.fields).toEqual({ 1: { name: "text", type: "string" } }), WAIT);
		await waitFor(() => expect(result.current[1]).toMatchObject({ isLoading: false, error: { status: 404 } }), WAIT);
	});
});

describe("a hook without a provider", () => {
	it("says what it needs", () => {
		expect(() => renderHook(() => useTypeDescriptor("test.Note", 1))).toThrow("TurnkeepProvider");
	});
});

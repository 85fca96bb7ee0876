import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { answerRequests } from "../../test/render";
import { connectionStore, setConnection } from "./connection";
import { loadPart } from "./load-part";

beforeEach(() => connectionStore.setState({ connection: { state: "connected" }, isPartMissing: false }));
afterEach(() => void vi.unstubAllGlobals());

const isPartMissing = () => connectionStore.getState().isPartMissing;
const missing = () => Promise.reject(new TypeError("Failed to fetch dynamically imported module"));

test("a part that a present server does not have means an upgrade", async () => {
	answerRequests({ "GET /v1/stats": {} });
	await expect(loadPart(missing)).rejects.toThrow("dynamically imported");
	expect(isPartMissing()).toBe(true);
});

test("a part that is refused because the window is signed out does not", async () => {
	answerRequests({ "GET /v1/stats": new Response(null, { status: 401 }) });
	await expect(loadPart(missing)).rejects.toThrow("dynamically imported");
	expect(connectionStore.getState().connection.state).toBe("signed-out");
	expect(isPartMissing()).toBe(false);
});

test("while the server is away the part waits for it", async () => {
	vi.stubGlobal("fetch", () => Promise.reject(new TypeError("refused")));
	let tries = 0;
	const loaded = loadPart(async () => {
		tries += 1;
		return tries === 1 ? missing() : "part";
	});
	await vi.waitFor(() => expect(tries).toBe(1));
	await new Promise((resolve) => setTimeout(resolve, 10));
	setConnection({ state: "reconnecting", since: 1 });
	setConnection({ state: "connected" });
	expect(await loaded).toBe("part");
	expect(isPartMissing()).toBe(false);
});

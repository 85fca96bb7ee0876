import { act, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { answerRequests, renderInWindow } from "../../test/render";
import { connectionStore, setConnection } from "../api/connection";
import { announcements } from "../components/announce";
import { ConnectionNotice, ConnectionState } from "./ConnectionState";
import GoScreen from "./GoScreen";
import { Rail } from "./Rail";
import { findRoute, mountKey } from "./routes";
import { ScreenBoundary } from "./ScreenBoundary";

const ID = "6f0a2d0e-8a3b-4c5d-9e1f-001122334455";

beforeEach(() => {
	connectionStore.setState({
		connection: { state: "connected" },
		isPartMissing: false,
		firstVersion: null,
		version: null,
	});
	history.replaceState(null, "", "/");
});
afterEach(() => void vi.unstubAllGlobals());

describe("the connection", () => {
	test("a loss is announced at once, and what is shown is given its age", () => {
		renderInWindow(
			<>
				<ConnectionState />
				<ConnectionNotice />
			</>,
		);
		act(() => setConnection({ state: "reconnecting", since: Date.now() - 90_000 }));
		expect(screen.getByText(/The connection was lost/).textContent).toContain("1 min ago");
		expect(announcements.getState().assertive.text).toContain("connection was lost");
		act(() => setConnection({ state: "connected" }));
		expect(screen.queryByText(/The connection was lost/)).toBeNull();
		expect(announcements.getState().polite.text).toBe("Connected again");
	});

	test("an upgrade asks for a reload", () => {
		connectionStore.setState({ firstVersion: "1", version: "2" });
		renderInWindow(<ConnectionNotice />);
		expect(screen.getByRole("button", { name: "Reload" })).toBeTruthy();
	});
});

test("the rail counts what waits, and only that", async () => {
	const item = { ref: `approval:${ID}`, runId: ID, since: "2026-11-18T14:00:00Z", summary: "x", actions: [] };
	answerRequests({
		"GET /api/attention": {
			items: [
				{ ...item, kind: "approval" },
				{ ...item, kind: "finished" },
			],
		},
	});
	renderInWindow(<Rail current="runs" />);
	expect((await screen.findByRole("link", { name: /Inbox 1 waiting/ })).getAttribute("aria-current")).toBeNull();
	expect(screen.getByRole("link", { name: "Runs" }).getAttribute("aria-current")).toBe("page");
});

describe("going to a ref", () => {
	const go = (ref: string) => renderInWindow(<GoScreen params={{ ref }} />);

	test("an agent is found in its run", async () => {
		const run = { id: ID, nodes: { [ID]: { id: ID } }, edges: {}, artifacts: {} };
		answerRequests({ "GET /api/runs": { runs: [run] } });
		go(`node:${ID}`);
		await vi.waitFor(() => expect(location.pathname).toBe(`/runs/${ID}/agents/${ID}/timeline`));
	});

	test("a turn of the store is found in its history", async () => {
		answerRequests({ "GET /v1/turns/7": { turn_id: "7", context_id: "3" } });
		go("turn:7");
		await vi.waitFor(() => expect(location.pathname).toBe("/history/3/turns/7"));
	});

	test("what no page shows any more is explained by its chain", async () => {
		const text = `message:${ID}`;
		const chain = [{ ref: text, kind: "message", summary: "please fix it", at: "2026-11-18T14:00:00Z" }];
		answerRequests({
			"GET /api/runs": { runs: [] },
			[`GET /v1/refs/${encodeURIComponent(text)}/why`]: { ref: text, complete: true, chain },
		});
		go(text);
		await screen.findByText("please fix it");
		expect(screen.queryByText(/not found/i)).toBeNull();
	});

	test("what is gone or no ref is said", async () => {
		answerRequests({});
		go("turn:9");
		await screen.findByText("This turn was not found");
		go("nonsense");
		await screen.findByText("This is no ref");
	});
});

function Broken(): never {
	throw new Error("boom");
}

test("a screen that fails takes nothing else along, and another page clears it", () => {
	answerRequests({});
	const silent = vi.spyOn(console, "error").mockImplementation(() => undefined);
	const { rerender } = renderInWindow(
		<ScreenBoundary resetKey="/a">
			<Broken />
		</ScreenBoundary>,
	);
	expect(screen.getByRole("alert").textContent).toContain("boom");
	silent.mockRestore();
	rerender(<ScreenBoundary resetKey="/b">fine</ScreenBoundary>);
	expect(screen.getByText("fine")).toBeTruthy();
});

test("a tab keeps its screen mounted, another agent does not", () => {
	const keyOf = (path: string) => {
		const matched = findRoute(path);
		return matched === null ? null : mountKey(matched);
	};
	expect(keyOf("/runs/r/agents/n/diffs")).toBe(keyOf("/runs/r/agents/n"));
	expect(keyOf("/runs/r/agents/m/diffs")).not.toBe(keyOf("/runs/r/agents/n/diffs"));
	expect(keyOf("/history/1/turns/2")).toBe(keyOf("/history/1"));
	expect(keyOf("/history/2")).not.toBe(keyOf("/history/1"));
});

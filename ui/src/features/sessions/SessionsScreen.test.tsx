import { cleanup, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, test, vi } from "vitest";
import { answerRequests, renderInWindow } from "../../../test/render";
import { connectionStore } from "../../api/connection";
import CapturedTurnScreen from "./CapturedTurnScreen";
import SessionsScreen from "./SessionsScreen";

afterEach(() => {
	cleanup();
	vi.unstubAllGlobals();
});

const closed = (reason: string) =>
	Response.json({ error: { code: "NotFound", message: "no", details: { reason } } }, { status: 404 });

test.each([
	["no_broker", /No broker runs inside this server/],
	["not_loopback", /an address that other machines can reach/],
])("where the routes are closed by %s, the page says why", async (reason, words) => {
	answerRequests({ "GET /v1/sessions": closed(reason) });
	renderInWindow(<SessionsScreen />);
	await screen.findByText(words);
});

test("an empty list shows the command that fills it", async () => {
	answerRequests({ "GET /v1/sessions": { sessions: [] } });
	renderInWindow(<SessionsScreen />);
	await screen.findByText("turnkeep wrap -- claude");
});

const ID = "0afb".repeat(8);
const TURN = {
	turn_id: `${ID}:3`,
	seq: "3",
	timestamp: "2026-11-18T17:00:00Z",
	byte_length: 3,
	interrupted: true,
	truncated: false,
	incomplete: false,
	unprompted: false,
};
const SESSIONS = {
	sessions: [
		{ session: ID, name: "review", pid: 1, unanswered: 0, has_turn: true, turns: 1, connected: true, shared: false },
	],
};

test("a refused capture says what did not happen and why", async () => {
	connectionStore.setState({ connection: { state: "connected" } });
	const refusal = { error: { code: "NotFound", message: "the turn is not kept any more", details: {} } };
	const { requests } = answerRequests({
		"GET /v1/sessions": SESSIONS,
		[`GET /v1/sessions/${ID}/turns/3`]: { ...TURN, session: ID, text: "Hi." },
		[`GET /v1/sessions/${ID}/turns?all=1`]: { session: ID, turns: [TURN] },
		[`POST /v1/sessions/${ID}/capture`]: Response.json(refusal, { status: 404 }),
	});
	renderInWindow(<CapturedTurnScreen params={{ session: "review", seq: "3" }} />);
	await screen.findByText("interrupted");
	await userEvent.click(screen.getByRole("button", { name: "Capture" }));
	await screen.findByText("The relay buffer is as it was.");
	const posts = requests.filter(({ method }) => method === "POST");
	expect(posts.length).toBe(1);
	screen.getByText("The turn is not kept any more.");
	expect(await posts[0]?.json()).toEqual({ seq: "3" });
});

test("a retry sends the key of the first try, and the next capture another one", async () => {
	connectionStore.setState({ connection: { state: "connected" } });
	const capture = `POST /v1/sessions/${ID}/capture`;
	const answers: Record<string, unknown> = {
		"GET /v1/sessions": SESSIONS,
		[`GET /v1/sessions/${ID}/turns/3`]: { ...TURN, session: ID, text: "Hi." },
		[`GET /v1/sessions/${ID}/turns?all=1`]: { session: ID, turns: [TURN] },
		[capture]: Response.json({ error: { code: "Internal", message: "the broker failed" } }, { status: 500 }),
	};
	const { requests } = answerRequests(answers);
	renderInWindow(<CapturedTurnScreen params={{ session: "review", seq: "3" }} />);
	await screen.findByText("interrupted");
	const button = screen.getByRole("button", { name: "Capture" });
	const press = async () => {
		const count = requests.length;
		await userEvent.click(button);
		await vi.waitFor(() => expect(requests.length).toBe(count + 1));
		await vi.waitFor(() => expect(button.getAttribute("aria-busy")).not.toBe("true"));
	};
	await press();
	answers[capture] = { turn_id: `${ID}:3`, size: 3 };
	await press();
	await press();
	const posts = requests.filter(({ method }) => method === "POST");
	const keys = posts.map(({ headers }) => headers.get("idempotency-key"));
	expect(keys[0]).toMatch(/^ui-[0-9a-f]{32}$/);
	expect(keys[1]).toBe(keys[0]);
	expect(keys[2]).not.toBe(keys[0]);
});

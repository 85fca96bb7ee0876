import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { renderInWindow } from "../../../../test/render";
import { setConnection } from "../../../api/connection";
import { toastStore } from "../../../components/toasts";
import { newNode, uuid } from "../../../model/run-fixtures";
import { AgentActions } from "./AgentActions";
import { AgentDangers } from "./AgentDangers";

const AGENT = newNode(uuid(1), "Coder", { status: "running", turnId: uuid(2), inboxCount: 2 });

/** The requests that were sent, and what answers the next ones; nothing answers after that. */
let sent: { readonly path: string; readonly body: unknown; readonly key: string | null }[] = [];
let answers: Response[] = [];

beforeEach(() => {
	sent = [];
	answers = [];
	toastStore.setState({ toasts: [] });
	setConnection({ state: "connected" });
	vi.stubGlobal("fetch", async (request: Request) => {
		const { pathname } = new URL(request.url);
		sent.push({ path: pathname, body: await request.json(), key: request.headers.get("idempotency-key") });
		const next = answers.shift();
		if (next === undefined) throw new TypeError("no answer");
		return next;
	});
});
afterEach(() => void vi.unstubAllGlobals());

test("an act whose answer was lost is sent again as the same request", async () => {
	const user = userEvent.setup();
	renderInWindow(<AgentActions node={AGENT} />);
	await user.click(screen.getByRole("button", { name: "Interrupt the turn" }));
	await screen.findByRole("alert");
	answers = [Response.json({ node: AGENT }), Response.json({ node: AGENT })];
	await user.click(screen.getByRole("button", { name: "Interrupt the turn" }));
	await waitFor(() => expect(toastStore.getState().toasts).toHaveLength(1));
	await user.click(screen.getByRole("button", { name: "Interrupt the turn" }));
	await waitFor(() => expect(sent).toHaveLength(3));
	expect(sent[1]?.key).toBe(sent[0]?.key);
	expect(sent[2]?.key).not.toBe(sent[0]?.key);
});

test("a new session is asked for before it begins", async () => {
	const user = userEvent.setup();
	answers = [Response.json({ node: AGENT })];
	renderInWindow(<AgentDangers node={AGENT} />);
	await user.click(screen.getByRole("button", { name: "New session…" }));
	expect(sent).toEqual([]);
	await user.click(screen.getByRole("checkbox", { name: "Also drop the 2 inputs that wait" }));
	await user.click(screen.getByRole("button", { name: "Begin a new session" }));
	await waitFor(() => expect(sent).toHaveLength(1));
	expect(sent[0]).toMatchObject({ path: expect.stringMatching(/\/reset$/), body: { clearInbox: true } });
});

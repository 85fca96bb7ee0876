import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { setConnection } from "../../../api/connection";
import { applyEvents, emptyRun, type RunState } from "../../../model/run";
import { createdRun, eventOf, newNode, RUN, uuid } from "../../../model/run-fixtures";
import { ChatBox } from "./ChatBox";
import { RunSourceContext } from "./run-source";

const [LEAD, WORKER] = [uuid(1), uuid(2)];
/** What the server was sent, and what it answers next. */
let sent: { readonly body: unknown; readonly key: string | null }[] = [];
let answers: Response[] = [];

function stateOf(...labels: readonly string[]): RunState {
	const nodes = labels.map((label, at) =>
		eventOf(at + 2, {
			type: "node.patch",
			nodeId: [LEAD, WORKER][at],
			patch: newNode([LEAD, WORKER][at] ?? "", label, { roleTemplate: at === 0 ? "orchestrator" : "implementer" }),
		}),
	);
	return applyEvents(emptyRun(RUN), [createdRun(), ...nodes]);
}

function show(state: RunState) {
	const source = { state: () => state, subscribe: () => () => undefined, isPast: false, time: () => null };
	render(
		<QueryClientProvider client={new QueryClient()}>
			<RunSourceContext value={source}>
				<ChatBox runId={RUN} agent={null} />
			</RunSourceContext>
		</QueryClientProvider>,
	);
}

function jsonAnswer(status: number, body: unknown): Response {
	return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
}

beforeEach(() => {
	sent = [];
	sessionStorage.clear();
	setConnection({ state: "connected" });
	vi.stubGlobal("fetch", async (request: Request) => {
		sent.push({ body: await request.json(), key: request.headers.get("idempotency-key") });
		const next = answers.shift();
		if (next === undefined) throw new TypeError("no answer");
		return next;
	});
});
afterEach(() => {
	cleanup();
	vi.unstubAllGlobals();
});

test("goes to the agent that leads, unless another one is chosen", async () => {
	answers = [jsonAnswer(201, { messageId: uuid(9) }), jsonAnswer(201, { messageId: uuid(10) })];
	const user = userEvent.setup();
	show(stateOf("Lead", "Worker"));
	await user.type(screen.getByRole("textbox", { name: "Message to Lead" }), "Begin");
	await user.click(screen.getByRole("button", { name: "Send" }));
	await waitFor(() => expect(sent).toHaveLength(1));
	expect(sent[0]?.body).toEqual({ content: "Begin", nodeId: LEAD, interrupt: false });
	await waitFor(() => expect(screen.getByRole("textbox")).toHaveProperty("value", ""));
	await user.selectOptions(screen.getByRole("combobox", { name: "To" }), "Worker");
	await user.type(screen.getByRole("textbox", { name: "Message to Worker" }), "Go on{Control>}{Enter}{/Control}");
	await waitFor(() => expect(sent[1]?.body).toEqual({ content: "Go on", nodeId: WORKER, interrupt: false }));
	expect(sent[1]?.key).not.toBe(sent[0]?.key);
});

test("keeps the text when no answer comes, and sends the same request again", async () => {
	answers = [];
	const user = userEvent.setup();
	show(stateOf("Lead"));
	await user.type(screen.getByRole("textbox"), "Begin");
	await user.click(screen.getByRole("button", { name: "Send" }));
	expect((await screen.findByRole("alert")).textContent).toContain("The message was not sent; its text is kept.");
	expect(screen.getByRole("textbox")).toHaveProperty("value", "Begin");
	answers = [jsonAnswer(201, { messageId: uuid(9) })];
	await user.click(screen.getByRole("button", { name: "Send" }));
	await waitFor(() => expect(screen.getByRole("textbox")).toHaveProperty("value", ""));
	expect(sent[1]?.key).toBe(sent[0]?.key);
});

test("sends nothing while the connection is away, and says why", async () => {
	setConnection({ state: "reconnecting", since: Date.now() });
	const user = userEvent.setup();
	show(stateOf("Lead"));
	await user.type(screen.getByRole("textbox"), "Begin{Control>}{Enter}{/Control}");
	expect(screen.getByRole("button", { name: "Send" }).getAttribute("aria-disabled")).toBe("true");
	expect(sent).toEqual([]);
});

test("a run without agents has nobody to write to", () => {
	show(stateOf());
	expect(screen.getByRole("button", { name: "Send" }).getAttribute("aria-disabled")).toBe("true");
});

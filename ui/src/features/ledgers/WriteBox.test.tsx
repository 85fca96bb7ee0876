import { fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { answerRequests, renderInWindow } from "../../../test/render";
import { setConnection } from "../../api/connection";
import { ApiError } from "../../api/errors";
import type { Eyes, Ledger } from "../../model/ledger";
import { ledgerError } from "./ledger-error";
import { WriteBox } from "./WriteBox";

const LEDGER = {
	world_id: "payments",
	operator_label: "The owner",
	registry: "CLOSED",
	timezone: "UTC",
	persons: [{ person_id: "CODER", display_label: "Coder" }, { person_id: "REVIEWER" }],
} as Ledger;
const BEATS = "POST /v1/worlds/payments/beats?as=CODER";

function show(eyes: Exclude<Eyes, { kind: "audit" }>) {
	renderInWindow(<WriteBox world="payments" ledger={LEDGER} eyes={eyes} people={["CODER", "REVIEWER"]} />);
	return screen.getByRole("textbox") as HTMLTextAreaElement;
}

const type = (box: HTMLTextAreaElement, text: string) => fireEvent.change(box, { target: { value: text } });

beforeEach(() => setConnection({ state: "connected" }));
afterEach(() => {
	vi.unstubAllGlobals();
	sessionStorage.clear();
});

test("the operator's words are sent as they are, under the label and not the id", async () => {
	const { requests } = answerRequests({ "POST /v1/worlds/payments/invocations": {} });
	const box = show({ kind: "operator" });
	screen.getByLabelText("Write as The owner");
	type(box, "  Go.\n");
	fireEvent.click(screen.getByRole("button", { name: "Write to everyone" }));
	await vi.waitFor(() => expect(box.value).toBe(""));
	expect(await requests[0]?.json()).toMatchObject({ operator: { input_text: "  Go.\n" } });
});

test("a person writes to those who are chosen, and to nobody else", async () => {
	const { requests } = answerRequests({ [BEATS]: {} });
	const box = show({ kind: "person", person: "CODER" });
	type(box, "Look.");
	fireEvent.click(screen.getByRole("button", { name: "Only some" }));
	screen.getByRole("button", { name: "Write a note to oneself" });
	expect(screen.queryByLabelText("Coder")).toBeNull();
	fireEvent.click(screen.getByLabelText("REVIEWER"));
	fireEvent.click(screen.getByRole("button", { name: "Write to REVIEWER" }));
	await vi.waitFor(() => expect(box.value).toBe(""));
	const body = (await requests[0]?.json()) as { bundle: { entries: { visibility: unknown }[] } };
	expect(body.bundle.entries[0]?.visibility).toEqual({ scope: "PRIVATE", visible_to: ["REVIEWER"] });
});

test("a refusal says code and path, keeps the text, and the next attempt is a new request", async () => {
	const bundle = { rejection: { rejected: true, reason: "TEXT_EMPTY: entries[0].text" } };
	const { requests } = answerRequests({ [BEATS]: Response.json({ bundle, projection: {} }, { status: 422 }) });
	const box = show({ kind: "person", person: "CODER" });
	type(box, "   ");
	fireEvent.keyDown(box, { key: "Enter", ctrlKey: true });
	const alert = await screen.findByRole("alert");
	expect(alert.textContent).toContain("TEXT_EMPTY");
	expect(alert.textContent).toContain("entries[0].text");
	expect(box.value).toBe("   ");
	fireEvent.keyDown(box, { key: "Enter", ctrlKey: true });
	await vi.waitFor(() => expect(requests).toHaveLength(2));
	const ids = await Promise.all(
		requests.map(async (each) => ((await each.json()) as { envelope: { request_id: string } }).envelope.request_id),
	);
	expect(ids[0]).not.toBe(ids[1]);
});

test("without an answer the same request is sent again, so that nothing is written twice", async () => {
	const bodies: { request_id: string }[] = [];
	vi.stubGlobal("fetch", async (request: Request) => {
		bodies.push((await request.json()) as { request_id: string });
		throw new TypeError("network");
	});
	const box = show({ kind: "operator" });
	type(box, "Go.");
	for (let sent = 1; sent <= 2; sent += 1) {
		fireEvent.click(screen.getByRole("button", { name: /^Write to everyone/ }));
		await vi.waitFor(() => expect(bodies).toHaveLength(sent));
		await screen.findByRole("alert");
	}
	expect(bodies[0]?.request_id).toBe(bodies[1]?.request_id);
	expect(box.value).toBe("Go.");
});

test("while not connected nothing is sent, and the reason is said", () => {
	setConnection({ state: "reconnecting", since: 0 });
	const { requests } = answerRequests({});
	const box = show({ kind: "operator" });
	type(box, "Go.");
	const button = screen.getByRole("button", { name: /^Write to everyone/ });
	fireEvent.click(button);
	expect(button.getAttribute("aria-description")).toContain("Reconnecting");
	expect(requests).toHaveLength(0);
});

test("errors call a ledger a ledger, but for names", () => {
	const error = new ApiError(409, "NAME_TAKEN", "world_id is the name of a world: `world`, the world's own");
	expect(ledgerError(error)).toMatchObject({
		code: "NAME_TAKEN",
		message: "the name is the name of a ledger: `world`, the ledger's own",
	});
});

import { fireEvent, screen, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { answerRequests, renderInWindow } from "../../../test/render";
import { RefChip } from "./RefChip";
import { WhyChain } from "./WhyPanel";
import { closeWhy, whyStore } from "./why-store";

const ID = "6f0a2d0e-8a3b-4c5d-9e1f-001122334455";

afterEach(() => {
	vi.unstubAllGlobals();
	closeWhy();
});

test("a chip is a link with a name that says what it is", () => {
	renderInWindow(<RefChip to={`run:${ID}`} name={"Fix\u202E it"} />);
	const link = screen.getByRole("link", { name: "run Fix⟨RLO⟩ it" });
	expect(link.getAttribute("href")).toBe(`/runs/${ID}`);
	expect(link.dataset.ref).toBe(`run:${ID}`);
});

test.each([
	["run", { runs: [{ id: ID, status: "paused", pausedReason: "user", updatedAt: "2026-11-18T14:40:12Z" }] }, "paused"],
	[
		"run",
		{ runs: [{ id: ID, status: "running", openApprovals: 1, updatedAt: "2026-11-18T14:40:12Z" }] },
		"waits for you",
	],
	["session", { sessions: [{ session: ID, connected: true, state: "blocked", unanswered: 0 }] }, "blocked"],
])("the chip of a %s shows its state", async (kind, list, word) => {
	answerRequests({ "GET /api/runs?summary=1": list, "GET /v1/sessions": list });
	renderInWindow(<RefChip to={`${kind}:${ID}`} name="Fix it" />);
	const link = await screen.findByRole("link", { name: new RegExp(`Fix it, ${word}$`) });
	expect(link.textContent).toContain(word);
});

test("a chip without a name looks it up", async () => {
	const runs = [{ id: ID, title: "Fix it", status: "completed", updatedAt: "2026-11-18T14:40:12Z" }];
	const whole = [{ id: ID, nodes: { [ID]: { id: ID, label: "Frontend", alias: "ui" } } }];
	answerRequests({ "GET /api/runs?summary=1": { runs }, "GET /api/runs": { runs: whole } });
	renderInWindow(
		<>
			<RefChip to={`run:${ID}`} />
			<RefChip to={`node:${ID}`} />
		</>,
	);
	await screen.findByRole("link", { name: "run Fix it, completed" });
	await screen.findByRole("link", { name: "agent Frontend (ui)" });
});

test("Alt-click asks for the chain instead of opening, where there is one", () => {
	renderInWindow(
		<>
			<RefChip to={`turn:${ID}`} />
			<RefChip to="world:payments" />
		</>,
	);
	fireEvent.click(screen.getByRole("link", { name: /agent turn/ }), { altKey: true });
	expect(whyStore.getState().ref).toBe(`turn:${ID}`);
	closeWhy();
	fireEvent.click(screen.getByRole("link", { name: /ledger/ }), { altKey: true });
	expect(whyStore.getState().ref).toBeNull();
});

test("a text that is no ref is shown as text", () => {
	const { container } = renderInWindow(<RefChip to="moon:x" />);
	expect(container.querySelector("a")).toBeNull();
	expect(container.textContent).toBe("moon:x");
});

test("a chain shows every step with its words, up to the person", async () => {
	const ref = `artifact://${ID}#src/a.ts:3`;
	const { requests } = answerRequests({
		[`GET /v1/refs/${encodeURIComponent(ref)}/why`]: {
			ref,
			complete: true,
			chain: [
				{ ref, kind: "line", summary: "const a = 1;", by: "coder", at: "2026-11-18T14:40:12Z" },
				{ ref: `envelope:${ID}`, kind: "handoff", summary: "Write it", by: "lead", also: [`message:${ID}`] },
				{ ref: "the operator", kind: "person", summary: "the operator" },
			],
		},
	});
	renderInWindow(<WhyChain of={ref} />);
	const steps = await screen.findAllByRole("listitem");
	expect(steps).toHaveLength(3);
	expect(steps[0]?.textContent).toContain("const a = 1;");
	expect(within(steps[1] as HTMLElement).getByRole("link", { name: /message/ })).toBeTruthy();
	expect(screen.getByText("The chain ends at a person.")).toBeTruthy();
	expect(requests).toHaveLength(1);
});

test("a chain that ends early says so, and an unknown ref is an error", async () => {
	answerRequests({
		"GET /v1/refs/turn%3A7/why": {
			ref: "turn:7",
			complete: true,
			chain: [{ ref: "turn:7", kind: "turn", summary: "x" }],
			end: "nothing is recorded about its cause",
		},
	});
	renderInWindow(<WhyChain of="turn:7" />);
	await screen.findByText("The chain ends here: nothing is recorded about its cause.");
	renderInWindow(<WhyChain of="turn:8" />);
	expect((await screen.findByRole("alert")).textContent).toContain("does not exist");
});

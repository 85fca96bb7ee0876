import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { answerRequests, renderInWindow } from "../../../test/render";
import { connectionStore } from "../../api/connection";
import { toastStore } from "../../components/toasts";
import { uuid } from "../../model/run-fixtures";
import type { OpenApproval } from "../../model/similar-approvals";
import { PermissionForm } from "./PermissionForm";

beforeEach(() => connectionStore.setState({ connection: { state: "connected" } }));
afterEach(() => void vi.unstubAllGlobals());

function open(more: Partial<OpenApproval>): OpenApproval {
	return {
		runId: uuid(1),
		approval: {
			approvalId: uuid(2),
			nodeId: uuid(3),
			turnId: uuid(4),
			kind: "tool",
			tool: { id: uuid(5), name: "Bash", args: { command: "make" } },
			context: "run `make`",
			createdAt: "2026-11-18T14:00:00Z",
			options: [],
		},
		...more,
	};
}

const buttons = () => screen.getAllByRole("button").map((button) => button.textContent);

test("a call is edited where its program takes other arguments, and denied with instructions where it does not", async () => {
	const { unmount } = renderInWindow(<PermissionForm open={open({ canEdit: true })} similar={[]} />);
	expect(buttons()).toEqual(["Approve once", "Approve for longer", "Edit…", "Deny", "Deny with words…"]);
	unmount();
	renderInWindow(<PermissionForm open={open({ canEdit: false })} similar={[]} />);
	expect(buttons()).toEqual(["Approve once", "Approve for longer", "Deny", "Deny with instructions…"]);
	const instruct = screen.getByRole("button", { name: "Deny with instructions…" });
	expect(instruct.dataset.key).toBe("e");
	await userEvent.click(instruct);
	screen.getByLabelText(/what to do instead/);
});

test("a wider yes is offered for the scopes that it may have", () => {
	renderInWindow(<PermissionForm open={open({ scopes: ["once"] })} similar={[]} />);
	expect(buttons()).not.toContain("Approve for longer");
});

test("an answer that comes second says who was first, and what", async () => {
	const resolution = { status: "denied", scope: "once", reason: "Not now", by: "command-line" };
	const refusal = { error: { code: "Conflict", message: "denied already", details: { resolution } } };
	answerRequests({
		[`POST /api/approvals/${uuid(2)}/resolve`]: Response.json(refusal, { status: 409 }),
		"GET /api/attention": { items: [] },
	});
	renderInWindow(<PermissionForm open={open({})} similar={[]} />);
	await userEvent.click(screen.getByRole("button", { name: "Approve once" }));
	const words = "Your answer came second. It was already denied on the command line: Not now.";
	await vi.waitFor(() => expect(toastStore.getState().toasts.map(({ text }) => text)).toContain(words));
});

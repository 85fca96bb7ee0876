import { fireEvent, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useEffect, useState } from "react";
import { afterEach, expect, test, vi } from "vitest";
import { answerRequests, renderInWindow } from "../../test/render";
import { handleKey } from "../components/keys";
import { closeWhy, whyStore } from "../components/refs/why-store";
import { RefActionsDialog } from "./RefActionsDialog";
import { type ShellDialog, useShellKeys } from "./useShellKeys";

const RUN = "6f0a2d0e-8a3b-4c5d-9e1f-001122334455";

afterEach(() => {
	vi.unstubAllGlobals();
	closeWhy();
	history.replaceState(null, "", "/");
});

/** A page with focusable things, and the part of the shell that acts on them. */
function Things({ refs }: { readonly refs: readonly string[] }) {
	const [dialog, setDialog] = useState<ShellDialog | null>(null);
	useShellKeys(setDialog);
	useEffect(() => {
		const onKey = (event: KeyboardEvent) => handleKey(event);
		addEventListener("keydown", onKey);
		return () => removeEventListener("keydown", onKey);
	}, []);
	return (
		<>
			{refs.map((ref) => (
				<a key={ref} href="/x" data-ref={ref}>
					{ref}
				</a>
			))}
			<a href="/y">nothing</a>
			{dialog?.kind === "actions" && <RefActionsDialog of={dialog.of} onClose={() => setDialog(null)} />}
		</>
	);
}

function press(name: string, key: string): void {
	const thing = screen.getByRole("link", { name });
	thing.focus();
	fireEvent.keyDown(thing, { key });
}

test("a dot lists what can be done with the focused thing, and does it", async () => {
	const runs = [{ id: RUN, title: "Fix it", status: "completed", updatedAt: "2026-11-18T14:40:12Z" }];
	answerRequests({ "GET /api/runs?summary=1": { runs } });
	renderInWindow(<Things refs={[`run:${RUN}`]} />);
	press(`run:${RUN}`, ".");
	await screen.findByRole("dialog", { name: "run Fix it" });
	expect(screen.getAllByRole("button").map((button) => button.textContent)).toEqual(
		expect.arrayContaining(["Open the run", "Its changes", "Why is nothing happening?", "Why is it here?"]),
	);
	await userEvent.click(screen.getByRole("button", { name: "Its changes" }));
	expect(location.pathname).toBe(`/runs/${RUN}/changes`);
	expect(screen.queryByRole("dialog")).toBeNull();
});

test("w explains what has a chain, and nothing else", () => {
	answerRequests({});
	renderInWindow(<Things refs={["turn:7", "world:payments"]} />);
	press("world:payments", "w");
	expect(whyStore.getState().ref).toBeNull();
	press("turn:7", "w");
	expect(whyStore.getState().ref).toBe("turn:7");
});

test("where nothing is focused that has a ref, a dot does nothing", () => {
	answerRequests({});
	renderInWindow(<Things refs={[]} />);
	press("nothing", ".");
	expect(screen.queryByRole("dialog")).toBeNull();
});

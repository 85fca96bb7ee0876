/** Buttons, dialogs and drawers: what the keyboard and assistive technology get. */

import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { afterEach, expect, test } from "vitest";
import { renderInWindow } from "../../test/render";
import { Button, IconButton } from "./Button";
import { ConfirmDialog } from "./ConfirmDialog";
import { Drawer } from "./Drawer";
import { drawerHost } from "./drawer-host";
import { toastStore } from "./toasts";

afterEach(() => drawerHost.setState({ element: null }));

test("a blocked button can be focused, says why, and does nothing", async () => {
	let presses = 0;
	renderInWindow(
		<Button blocked="Reconnecting" onClick={() => (presses += 1)}>
			Send
		</Button>,
	);
	const button = screen.getByRole("button", { name: "Send" });
	await userEvent.tab();
	expect(document.activeElement).toBe(button);
	expect(button.getAttribute("aria-disabled")).toBe("true");
	await userEvent.click(button);
	expect(presses).toBe(0);
	expect(button.getAttribute("aria-description")).toBe("Reconnecting");
	// A finger has no pointer that could rest on it.
	expect(toastStore.getState().toasts.at(-1)?.text).toBe("Reconnecting");
});

test("a pending button takes no second press, also in a form", () => {
	let sent = 0;
	renderInWindow(
		<form onSubmit={() => (sent += 1)}>
			<Button type="submit" isPending>
				Send
			</Button>
		</form>,
	);
	const isAllowed = fireEvent.click(screen.getByRole("button", { name: /Send/ }));
	expect([isAllowed, sent]).toEqual([false, 0]);
});

test("an icon button has a name", () => {
	renderInWindow(<IconButton label="Close details" icon="close" />);
	expect(screen.getByRole("button", { name: "Close details" })).toBeTruthy();
});

function Asking({ onConfirm }: { readonly onConfirm: () => void }) {
	const [isOpen, setOpen] = useState(false);
	return (
		<>
			<Button onClick={() => setOpen(true)}>Delete run</Button>
			<ConfirmDialog
				title="Delete it?"
				verb="Delete it now"
				isOpen={isOpen}
				onConfirm={onConfirm}
				onClose={() => setOpen(false)}
			>
				Its records stay.
			</ConfirmDialog>
		</>
	);
}

test("a confirmation focuses the harmless answer, and the focus returns", async () => {
	let confirmed = 0;
	renderInWindow(<Asking onConfirm={() => (confirmed += 1)} />);
	const trigger = screen.getByRole("button", { name: "Delete run" });
	await userEvent.click(trigger);
	const keep = await screen.findByRole("button", { name: "Keep it" });
	await waitFor(() => expect(document.activeElement).toBe(keep));
	await userEvent.keyboard("{Enter}");
	await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
	await waitFor(() => expect(document.activeElement).toBe(trigger));
	expect(confirmed).toBe(0);
});

function WithDrawer() {
	const [isOpen, setOpen] = useState(false);
	return (
		<>
			<button type="button" onClick={() => setOpen(true)}>
				Open
			</button>
			<aside ref={(element) => drawerHost.setState({ element })} />
			{isOpen && (
				<Drawer title="Coder" onClose={() => setOpen(false)}>
					details
				</Drawer>
			)}
		</>
	);
}

test("a drawer takes the focus, Esc closes it and gives the focus back", async () => {
	renderInWindow(<WithDrawer />);
	const trigger = screen.getByRole("button", { name: "Open" });
	await userEvent.click(trigger);
	const heading = await screen.findByRole("heading", { name: "Coder" });
	expect(document.activeElement).toBe(heading);
	await act(() => userEvent.keyboard("{Escape}"));
	expect(screen.queryByText("details")).toBeNull();
	expect(document.activeElement).toBe(trigger);
});

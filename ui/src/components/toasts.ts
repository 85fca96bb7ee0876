/** Short messages about what was done, in a corner and in the polite live region. Errors stand where they happened. */

import { createStore } from "zustand/vanilla";
import { announce } from "./announce";

export interface Toast {
	readonly id: number;
	readonly text: string;
	/** What can be done about it: "Undo", "Open". */
	readonly action?: { readonly label: string; readonly run: () => void };
}

const SHOWN_MS = 6_000;
const SHOWN_MAX = 3;

export const toastStore = createStore<{ readonly toasts: readonly Toast[] }>(() => ({ toasts: [] }));
let lastId = 0;

/** Says that something was done: `toast("Applied 7 files to ~/shop")`. */
export function toast(text: string, action?: Toast["action"]): void {
	lastId += 1;
	const id = lastId;
	const shown: Toast = action === undefined ? { id, text } : { id, text, action };
	toastStore.setState(({ toasts }) => ({ toasts: [...toasts, shown].slice(-SHOWN_MAX) }));
	announce(text);
	setTimeout(() => dismissToast(id), SHOWN_MS);
}

export function dismissToast(id: number): void {
	toastStore.setState(({ toasts }) => ({ toasts: toasts.filter((each) => each.id !== id) }));
}

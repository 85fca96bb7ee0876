/** `a`, `d` and `e` press the buttons of the focused item that are marked with `data-key`. */

import type { RefObject } from "react";
import type { KeyBinding } from "../../components/keys";

const ITEM_KEYS = [
	{ key: "a", does: "approve, or answer" },
	{ key: "d", does: "deny, or remove from the inbox" },
	{ key: "e", does: "edit, then approve" },
] as const;

export function useItemKeys(list: RefObject<HTMLElement | null>): KeyBinding[] {
	return ITEM_KEYS.map(({ key, does }) => ({ key, does, run: () => pressInFocusedItem(list.current, key) }));
}

function pressInFocusedItem(list: HTMLElement | null, key: string): boolean {
	const items = Array.from(list?.querySelectorAll<HTMLElement>("[data-item]") ?? []);
	const focused = items.find((item) => item.contains(document.activeElement));
	const button = focused?.querySelector<HTMLButtonElement>(`[data-key="${key}"]`);
	button?.click();
	return button !== null && button !== undefined;
}

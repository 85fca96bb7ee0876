import { navigate } from "wouter/use-browser-location";
import { type KeyBinding, useKeys } from "../components/keys";
import { explain } from "../components/refs/why-store";
import { formatRef, hasChain, parseRef, type Ref } from "../model/refs";
import { PLACES } from "./places";

/** What the shell can open above a page. */
export type ShellDialog = { readonly kind: "search" | "keys" } | { readonly kind: "actions"; readonly of: Ref };

/** The keys that work everywhere. */
export function useShellKeys(open: (dialog: ShellDialog) => void): void {
	const bindings: KeyBinding[] = [
		{ key: "Ctrl+k", does: "search and act", run: () => act(() => open({ kind: "search" })) },
		{ key: "/", does: "search and act", run: () => act(() => open({ kind: "search" })) },
		{ key: "?", does: "show the keys of this page", run: () => act(() => open({ kind: "keys" })) },
		...PLACES.map(({ letter, label, path }) => ({
			key: `g ${letter}`,
			does: `go to ${label}`,
			run: () => act(() => navigate(path)),
		})),
		{ key: "w", does: "show why the focused thing is there", run: explainFocused },
		{
			key: ".",
			does: "what can be done with the focused thing",
			run: () => {
				const ref = focusedRef();
				if (ref !== null) open({ kind: "actions", of: ref });
				return ref !== null;
			},
		},
	];
	useKeys("Everywhere", bindings);
}

function act(does: () => void): undefined {
	does();
}

/** The ref of the focused chip or row, or the one around the focus. */
function focusedRef(): Ref | null {
	const text = document.activeElement?.closest("[data-ref]")?.getAttribute("data-ref") ?? null;
	return text === null ? null : parseRef(text);
}

function explainFocused(): boolean {
	const ref = focusedRef();
	if (ref === null || !hasChain(ref)) return false;
	explain(formatRef(ref));
	return true;
}

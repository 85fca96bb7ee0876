import { navigate } from "wouter/use-browser-location";
import { type KeyBinding, useKeys } from "../components/keys";
import { explain } from "../components/refs/why-store";
import { PLACES } from "./places";

/** The keys that work everywhere. */
export function useShellKeys(open: (dialog: "search" | "keys") => void): void {
	const bindings: KeyBinding[] = [
		{ key: "Ctrl+k", does: "search and act", run: () => act(() => open("search")) },
		{ key: "/", does: "search and act", run: () => act(() => open("search")) },
		{ key: "?", does: "show the keys of this page", run: () => act(() => open("keys")) },
		...PLACES.map(({ letter, label, path }) => ({
			key: `g ${letter}`,
			does: `go to ${label}`,
			run: () => act(() => navigate(path)),
		})),
		{ key: "w", does: "show why the focused thing is there", run: explainFocused },
	];
	useKeys("Everywhere", bindings);
}

function act(does: () => void): undefined {
	does();
}

/** The ref of the focused chip, or the one around the focus. */
function explainFocused(): boolean {
	const ref = document.activeElement?.closest("[data-ref]")?.getAttribute("data-ref") ?? null;
	if (ref !== null) explain(ref);
	return ref !== null;
}

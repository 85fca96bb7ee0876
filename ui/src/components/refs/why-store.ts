/** Which ref the Why panel explains. The shell shows the panel; anything may ask for it. */

import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";

export const whyStore = createStore<{ readonly ref: string | null }>(() => ({ ref: null }));

/** Opens the chain of a ref in the drawer. */
export function explain(ref: string): void {
	whyStore.setState({ ref });
}

export function closeWhy(): void {
	whyStore.setState({ ref: null });
}

export function useExplained(): string | null {
	return useStore(whyStore, (state) => state.ref);
}

/** What the current screen tells the shell: its breadcrumb. Set by `Page`, read by the top bar. */

import { createStore } from "zustand/vanilla";

export interface Crumb {
	readonly label: string;
	/** Where it leads; the last one leads nowhere. */
	readonly href?: string;
}

export const pageStore = createStore<{ readonly crumbs: readonly Crumb[] }>(() => ({ crumbs: [] }));

/**
 * What assistive technology is told without moving the focus. The shell renders the two live regions.
 *
 * Polite for news such as a new inbox item; assertive for a lost connection. Never for streaming text.
 */

import { createStore } from "zustand/vanilla";

export type Urgency = "polite" | "assertive";

interface Announcement {
	readonly text: string;
	/** Rises, so that the same text is read a second time. */
	readonly number: number;
}

export const announcements = createStore<Readonly<Record<Urgency, Announcement>>>(() => ({
	polite: { text: "", number: 0 },
	assertive: { text: "", number: 0 },
}));

export function announce(text: string, urgency: Urgency = "polite"): void {
	announcements.setState((state) => ({ [urgency]: { text, number: state[urgency].number + 1 } }));
}

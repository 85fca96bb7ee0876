/** What a person set for this browser: theme, and whether single letters act. Kept in the browser only. */

import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export interface Preferences {
	readonly theme: Theme;
	/** Whether single letters are keys (`?` lists them). */
	readonly letters: boolean;
}

const STORAGE_KEY = "turnkeep.preferences";

export const preferencesStore = createStore<Preferences>(() => readPreferences(readStored()));

export function setPreferences(change: Partial<Preferences>): void {
	preferencesStore.setState(change);
	try {
		localStorage.setItem(STORAGE_KEY, JSON.stringify(preferencesStore.getState()));
	} catch {
		// A browser that stores nothing keeps them until the page is closed.
	}
}

export function usePreferences(): Preferences {
	return useStore(preferencesStore);
}

function readStored(): string | null {
	try {
		return localStorage.getItem(STORAGE_KEY);
	} catch {
		return null;
	}
}

/** Reads what was stored; what does not fit gets its default. */
export function readPreferences(stored: string | null): Preferences {
	let value: Partial<Record<keyof Preferences, unknown>> = {};
	try {
		value = JSON.parse(stored ?? "{}") ?? {};
	} catch {
		// Broken text is no preference.
	}
	return {
		theme: THEMES.find((theme) => theme === value.theme) ?? "system",
		letters: typeof value.letters === "boolean" ? value.letters : true,
	};
}

/** Puts the theme on the document, and keeps it there. */
export function applyTheme(): () => void {
	const apply = ({ theme }: Preferences) => {
		if (theme === "system") delete document.documentElement.dataset.theme;
		else document.documentElement.dataset.theme = theme;
	};
	apply(preferencesStore.getState());
	return preferencesStore.subscribe(apply);
}

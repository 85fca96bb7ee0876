/**
 * Text that a person types, kept in this tab until it is sent: it survives a lost connection, signing in again, a reload
 * and going elsewhere. Secrets and chosen files are not kept.
 */

import { useCallback, useState } from "react";

const PREFIX = "turnkeep.draft.";

/** `const [text, setText, clear] = useDraft(`chat:${run}:${node}`)`. The key names the form and its object. */
export function useDraft(key: string): [text: string, set: (text: string) => void, clear: () => void] {
	const [drafts, setDrafts] = useState<Readonly<Record<string, string>>>({});
	const text = drafts[key] ?? readDraft(key);
	const set = useCallback(
		(next: string) => {
			writeDraft(key, next);
			setDrafts((known) => ({ ...known, [key]: next }));
		},
		[key],
	);
	const clear = useCallback(() => set(""), [set]);
	return [text, set, clear];
}

function readDraft(key: string): string {
	try {
		return sessionStorage.getItem(PREFIX + key) ?? "";
	} catch {
		return "";
	}
}

function writeDraft(key: string, text: string): void {
	try {
		if (text === "") sessionStorage.removeItem(PREFIX + key);
		else sessionStorage.setItem(PREFIX + key, text);
	} catch {
		// A browser that stores nothing keeps the text as long as the form is open.
	}
}

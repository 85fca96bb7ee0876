/**
 * Keys of screens: registered while a component is mounted, listed by `?`, handled in one place.
 *
 * A key is `j`, `?`, `Enter`, `Ctrl+k`, or a sequence such as `g i`. Single keys never act while a text field has the
 * focus or a dialog is open, and letters can be turned off. The binding that was registered last wins.
 */

import { useEffect, useRef } from "react";
import { preferencesStore } from "../api/preferences";

export interface KeyBinding {
	readonly key: string;
	/** What it does, as `?` lists it: "open the run". */
	readonly does: string;
	/** Returns false if there is nothing to act on, so that the key goes on to other bindings and the browser. */
	readonly run: (event: KeyboardEvent) => boolean | undefined;
}

export interface KeyScope {
	/** Where the keys work: "Inbox", "Everywhere". */
	readonly name: string;
	readonly bindings: readonly KeyBinding[];
}

const SEQUENCE_MS_MAX = 1500;

const scopes: { current: KeyScope }[] = [];
let begun: { readonly key: string; readonly at: number } | null = null;

/** All keys that act now, the innermost scope first. */
export function keyScopes(): KeyScope[] {
	return scopes.map((scope) => scope.current).toReversed();
}

/** Registers keys while the component is mounted. The bindings may be new objects on every render. */
export function useKeys(name: string, bindings: readonly KeyBinding[]): void {
	const scope = useRef<KeyScope>({ name, bindings });
	useEffect(() => {
		scope.current = { name, bindings };
	});
	useEffect(() => {
		scopes.push(scope);
		return () => void scopes.splice(scopes.indexOf(scope), 1);
	}, []);
}

/** Runs the binding of a key press, if there is one. The shell calls it for every press. */
export function handleKey(event: KeyboardEvent, now = Date.now()): void {
	if (event.defaultPrevented || event.isComposing) return;
	const key = keyName(event);
	const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
	if (isPlain && (isTyping(event.target) || isDialogOpen() || !areLettersOn(key))) return;
	const prefix = begun !== null && now - begun.at <= SEQUENCE_MS_MAX ? begun.key : null;
	begun = null;
	if (prefix !== null && runFirst(`${prefix} ${key}`, event)) return;
	if (runFirst(key, event)) return;
	const isPrefix = keyScopes().some((scope) => scope.bindings.some((binding) => binding.key.startsWith(`${key} `)));
	if (isPrefix) begun = { key, at: now };
}

function runFirst(key: string, event: KeyboardEvent): boolean {
	for (const scope of keyScopes()) {
		const binding = scope.bindings.find((each) => each.key === key);
		if (binding !== undefined && binding.run(event) !== false) {
			event.preventDefault();
			return true;
		}
	}
	return false;
}

function keyName(event: KeyboardEvent): string {
	// On a Mac the command key does what Ctrl does elsewhere.
	const isControl = event.ctrlKey || event.metaKey;
	const key = isControl && event.key.length === 1 ? event.key.toLowerCase() : event.key;
	return `${isControl ? "Ctrl+" : ""}${event.altKey ? "Alt+" : ""}${key}`;
}

function areLettersOn(key: string): boolean {
	return key.length > 1 || preferencesStore.getState().letters;
}

/** Whether a dialog or a menu has the keys. */
export function isDialogOpen(): boolean {
	return document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]') !== null;
}

/** Whether the focus is where letters are text. */
export function isTyping(target: EventTarget | null): boolean {
	if (!(target instanceof HTMLElement)) return false;
	if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement)
		return true;
	if (target.closest(".xterm") !== null) return true;
	return (
		target instanceof HTMLInputElement && !["checkbox", "radio", "button", "submit", "range"].includes(target.type)
	);
}

/** Moves the focus among the elements with `data-item` in a container; returns false if there is none. */
export function moveFocus(container: HTMLElement | null, step: 1 | -1): boolean {
	const items = Array.from(container?.querySelectorAll<HTMLElement>("[data-item]") ?? []);
	const at = items.findIndex((item) => item.contains(document.activeElement));
	const next = at < 0 ? items.at(step > 0 ? 0 : -1) : items[at + step];
	next?.focus();
	next?.scrollIntoView({ block: "nearest" });
	return next !== undefined;
}

/** The bindings that move through a list: `j`, `k` and the arrows. */
export function listBindings(container: () => HTMLElement | null): KeyBinding[] {
	const down = (event: KeyboardEvent) => !isInScroller(event) && moveFocus(container(), 1);
	const up = (event: KeyboardEvent) => !isInScroller(event) && moveFocus(container(), -1);
	return [
		{ key: "j", does: "next", run: () => moveFocus(container(), 1) },
		{ key: "k", does: "previous", run: () => moveFocus(container(), -1) },
		{ key: "ArrowDown", does: "next", run: down },
		{ key: "ArrowUp", does: "previous", run: up },
	];
}

/** Arrows in a tree, a grid or a group of radio buttons have a meaning of their own. */
function isInScroller(event: KeyboardEvent): boolean {
	return (
		event.target instanceof HTMLElement &&
		event.target.closest('[role="tree"], [role="grid"], [role="radiogroup"]') !== null
	);
}

import { fireEvent, render } from "@testing-library/react";
import { useRef } from "react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { setPreferences } from "../api/preferences";
import { handleKey, type KeyBinding, keyScopes, listBindings, useKeys } from "./keys";

const onKey = (event: KeyboardEvent) => handleKey(event);
beforeEach(() => addEventListener("keydown", onKey));
afterEach(() => {
	removeEventListener("keydown", onKey);
	setPreferences({ letters: true });
});

function Scope({ name, bindings }: { readonly name: string; readonly bindings: readonly KeyBinding[] }) {
	useKeys(name, bindings);
	return <input aria-label={name} />;
}

function press(key: string, init: KeyboardEventInit = {}, target: Element = document.body) {
	fireEvent.keyDown(target, { key, ...init });
}

function bind(log: string[], key: string, result?: boolean): KeyBinding {
	return {
		key,
		does: key,
		run: () => {
			log.push(key);
			return result;
		},
	};
}

test("keys act, sequences too, and not while somebody types", () => {
	const log: string[] = [];
	const { getByLabelText } = render(
		<Scope name="A" bindings={["a", "g i", "?", "Ctrl+k"].map((key) => bind(log, key))} />,
	);
	press("a");
	press("g");
	press("i");
	press("?", { shiftKey: true });
	press("K", { ctrlKey: true });
	press("k", { metaKey: true });
	expect(log).toEqual(["a", "g i", "?", "Ctrl+k", "Ctrl+k"]);
	press("a", {}, getByLabelText("A"));
	expect(log).toHaveLength(5);
	press("k", { ctrlKey: true }, getByLabelText("A"));
	expect(log).toHaveLength(6);
});

test("letters can be turned off", () => {
	const log: string[] = [];
	render(<Scope name="A" bindings={[bind(log, "a"), bind(log, "Enter")]} />);
	setPreferences({ letters: false });
	press("a");
	press("Enter");
	expect(log).toEqual(["Enter"]);
});

test("the innermost scope comes first, and may let a key pass", () => {
	const log: string[] = [];
	render(
		<>
			<Scope name="outer" bindings={[bind(log, "a"), bind(log, "b")]} />
			<Scope name="inner" bindings={[{ key: "a", does: "nothing", run: () => false }]} />
		</>,
	);
	expect(keyScopes().map((scope) => scope.name)).toEqual(["inner", "outer"]);
	press("a");
	expect(log).toEqual(["a"]);
});

test("no single key acts behind a dialog", () => {
	const log: string[] = [];
	render(
		<>
			<Scope name="A" bindings={[bind(log, "a")]} />
			<div role="dialog" />
		</>,
	);
	press("a");
	expect(log).toEqual([]);
});

function List() {
	const list = useRef<HTMLUListElement>(null);
	useKeys(
		"List",
		listBindings(() => list.current),
	);
	return (
		<ul ref={list}>
			{["one", "two"].map((name) => (
				<li key={name}>
					<button type="button" data-item="">
						{name}
					</button>
				</li>
			))}
		</ul>
	);
}

test("j and k move the focus through a list and stop at its ends", () => {
	render(<List />);
	const pressFocused = (key: string) => {
		press(key, {}, document.activeElement ?? document.body);
		return document.activeElement?.textContent;
	};
	expect(["j", "j", "j", "k"].map(pressFocused)).toEqual(["one", "two", "two", "one"]);
});

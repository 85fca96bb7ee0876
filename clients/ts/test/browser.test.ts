/** What browsers load has nothing of Node in it. */

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** Every module that a source file leads to, itself included. */
function modulesOf(file: URL, seen = new Map<string, string>()): Map<string, string> {
	if (seen.has(file.href)) return seen;
	const source = readFileSync(file, "utf8");
	seen.set(file.href, source);
	for (const [, path] of source.matchAll(/from "(\.[^"]+)\.js"/g)) {
		const isTypeOnly = new RegExp(`import type [^;]*from "${path}\\.js"`).test(source);
		if (!isTypeOnly) modulesOf(new URL(`${path}.ts`, file), seen);
	}
	return seen;
}

it.each(["core", "http", "react"])("%s imports no module and names no global of Node", (entry) => {
	const modules = modulesOf(new URL(`../src/${entry}/index.ts`, import.meta.url));
	expect(modules.size).toBeGreaterThan(5);
	for (const [name, source] of modules) {
		expect(source, name).not.toMatch(/from "node:|\bBuffer\b|\bprocess\.|setImmediate/);
	}
});

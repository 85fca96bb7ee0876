/** Every text colour on every ground that it stands on, in both themes. */

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const css = readFileSync("src/app/tokens.css", "utf8");
const tokens = new Map<string, readonly [light: string, dark: string]>();
for (const [, name = "", light = "", dark = ""] of css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)) {
	tokens.set(name, [light, dark]);
}

/** Contrast as WCAG 2 defines it. */
function contrast(one: string, other: string): number {
	const [low = 0, high = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
	return (high + 0.05) / (low + 0.05);
}

function luminance(hex: string): number {
	const channel = (at: number) => {
		const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
		return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
	};
	return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

function lowest(text: string, ground: string): number {
	const front = tokens.get(text);
	const back = tokens.get(ground);
	if (front === undefined || back === undefined) throw new Error(`${text} or ${ground} is no token`);
	return Math.min(contrast(front[0], back[0]), contrast(front[1], back[1]));
}

const NEUTRAL = ["ground", "surface", "sunken", "hover", "selected"];
const pairs = (texts: readonly string[], grounds: readonly string[]) =>
	texts.flatMap((text) => grounds.map((ground): [string, string] => [text, ground]));

describe("text reads well", () => {
	test.each([
		...pairs(["text", "text-soft", "text-faint", "accent"], NEUTRAL),
		...pairs(["running", "waiting", "failed", "done", "seen-as"], NEUTRAL),
		...["running", "waiting", "failed", "done", "seen-as"].map((state): [string, string] => [state, `${state}-ground`]),
		...pairs(["text", "text-soft"], ["running-ground", "waiting-ground", "failed-ground", "done-ground"]),
		...pairs(["text", "text-soft"], ["added-ground", "removed-ground", "seen-as-ground", "accent-ground"]),
		["accent", "accent-ground"],
		["on-accent", "accent"],
		["on-accent", "accent-hover"],
	])("%s on %s", (text, ground) => {
		expect(lowest(text, ground)).toBeGreaterThanOrEqual(4.5);
	});
});

test.each(pairs(["line-strong", "focus"], ["ground", "surface", "sunken"]))("%s is visible on %s", (line, ground) => {
	expect(lowest(line, ground)).toBeGreaterThanOrEqual(3);
});

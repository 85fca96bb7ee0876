/** How fresh turns join the ones that are there. */

import { describe, expect, it } from "vitest";
import type { Turn } from "../../src/http/index.js";
import { joined } from "../../src/react/turn-log.js";

/** Turns by id, each the child of the one before; the first one's parent is given. */
function stretch(parent: number, ...ids: number[]): Turn[] {
	return ids.map(
		(id, index) => ({ turn_id: `${id}`, parent_turn_id: `${ids[index - 1] ?? parent}` }) as unknown as Turn,
	);
}

describe("joining", () => {
	const cases: [string, Turn[], Turn[], number[] | null][] = [
		["nothing with nothing", [], [], []],
		["the first page with nothing", [], stretch(0, 1, 2), null],
		["a page that overlaps", stretch(0, 1, 2, 3), stretch(1, 2, 3, 4), [1, 2, 3, 4]],
		["a page that follows", stretch(0, 1, 2), stretch(2, 3, 4), [1, 2, 3, 4]],
		["a page beyond a gap", stretch(0, 1, 2), stretch(3, 4, 5), null],
		["a branch within what is known", stretch(0, 1, 2, 3), stretch(1, 7, 8), [1, 7, 8]],
		["a branch that overlaps", stretch(0, 1, 2, 3), stretch(0, 1, 7), [1, 7]],
		["a head that moved back", stretch(0, 1, 2, 3), stretch(0, 1, 2), [1, 2]],
		["another root", stretch(0, 1, 2), stretch(0, 5, 6), null],
	];

	it.each(cases)("%s", (_name, known, fresh, expected) => {
		expect(joined(known, fresh)?.map((turn) => Number(turn.turn_id)) ?? null).toEqual(expected);
	});

	it("what is there already changes nothing, not even the array", () => {
		const known = stretch(0, 1, 2, 3);
		expect(joined(known, stretch(1, 2, 3))).toBe(known);
	});

	it("keeps the objects that were there", () => {
		const known = stretch(0, 1, 2);
		expect(joined(known, stretch(0, 1, 2, 3))?.[1]).toBe(known[1]);
	});
});

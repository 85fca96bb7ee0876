import { describe, expect, it } from "vitest";
import {
	CARD_GAP_PX,
	FLOAT_WIDTH_PX_MIN,
	intersection,
	placeCard,
	type Rect,
	restingPlace,
	type Size,
	toastClearance,
} from "./tour-place";

const WINDOW: Size = { width: 1280, height: 800 };
const CARD: Size = { width: 350, height: 160 };
const rect = (left: number, top: number, width: number, height: number): Rect => ({ left, top, width, height });
const place = (target: Rect, window = WINDOW) => placeCard({ window, card: CARD, target });

describe("the place of the card", () => {
	it("is the first side with room, along the target", () => {
		expect(place(rect(20, 300, 100, 40))).toEqual({ kind: "floating", left: 128, top: 300 });
		expect(place(rect(1100, 300, 100, 40))).toEqual({ kind: "floating", left: 742, top: 300 });
		expect(place(rect(170, 120, 1100, 200))).toEqual({ kind: "floating", left: 170, top: 328 });
		expect(place(rect(100, 500, 1100, 200))).toEqual({ kind: "floating", left: 100, top: 332 });
	});

	it("is moved into the window along the target", () => {
		expect(place(rect(20, 790, 100, 10))).toMatchObject({ top: 800 - 160 - CARD_GAP_PX });
		expect(place(rect(20, 0, 100, 10))).toMatchObject({ top: CARD_GAP_PX });
	});

	it("is under the page where no side has room, and always in a narrow window", () => {
		expect(place(rect(100, 100, 1100, 600))).toEqual({ kind: "docked" });
		expect(place(rect(0, 0, 20, 20), { width: FLOAT_WIDTH_PX_MIN - 1, height: 800 })).toEqual({ kind: "docked" });
	});

	it("takes the size of the card, and not where the card is", () => {
		const card = { ...CARD, left: 900, top: 700 };
		const target = rect(20, 300, 100, 40);
		expect(placeCard({ window: WINDOW, card, target })).toEqual(place(target));
		// A rectangle of the browser has its values as accessors, which a spread would lose.
		expect(placeCard({ window: WINDOW, card: new DOMRect(0, 0, CARD.width, CARD.height), target })).toEqual(
			place(target),
		);
	});

	it("never covers the target, and never leaves the window", () => {
		for (const [left, top, width, height] of rectangles()) {
			const target = rect(left, top, width, height);
			const found = place(target);
			if (found.kind === "docked") continue;
			const card = { ...CARD, left: found.left, top: found.top };
			expect([target, intersection(card, target)]).toEqual([target, null]);
			expect([target, intersection(card, rect(0, 0, WINDOW.width, WINDOW.height))]).toEqual([target, card]);
		}
	});
});

/** Targets of many sizes all over the window. */
function* rectangles(): Generator<[left: number, top: number, width: number, height: number]> {
	for (let left = 0; left < WINDOW.width; left += 90)
		for (let top = 0; top < WINDOW.height; top += 70)
			for (const width of [10, 300, 900])
				for (const height of [10, 200, 500])
					yield [left, top, Math.min(width, WINDOW.width - left), Math.min(height, WINDOW.height - top)];
}

describe("without a target", () => {
	it("the card rests at the bottom right", () => {
		expect(restingPlace({ window: WINDOW, card: CARD })).toEqual({ kind: "floating", left: 914, top: 624 });
	});

	it("the card is docked where it does not fit", () => {
		expect(restingPlace({ window: { width: 390, height: 844 }, card: CARD })).toEqual({ kind: "docked" });
		expect(restingPlace({ window: { width: 1280, height: 100 }, card: CARD })).toEqual({ kind: "docked" });
	});
});

describe("toasts", () => {
	const clearance = (left: number, top: number) =>
		toastClearance({ kind: "floating", left, top }, { window: WINDOW, card: CARD });

	it("stand above a card in their corner, and stay where the card is elsewhere", () => {
		expect(clearance(914, 624)).toBe(176);
		expect(clearance(100, 624)).toBe(0);
		expect(clearance(914, 100)).toBe(0);
		expect(toastClearance({ kind: "docked" }, { window: WINDOW, card: CARD })).toBe(160);
	});
});

describe("what two rectangles share", () => {
	it("is a rectangle, or nothing", () => {
		expect(intersection(rect(0, 0, 10, 10), rect(4, 6, 10, 10))).toEqual(rect(4, 6, 6, 4));
		expect(intersection(rect(0, 0, 10, 10), rect(10, 0, 10, 10))).toBeNull();
		expect(intersection(rect(0, 0, 10, 10), rect(20, 20, 10, 10))).toBeNull();
	});
});

import { describe, expect, it } from "vitest";
import { TOUR_STEPS } from "./tour";
import { beginTour, nextStep, recallTour, stepNumber } from "./tour-progress";

describe("the progress of a tour", () => {
	it("is recalled as it was left", () => {
		const left = { run: "r", step: "wait", isOpen: false } as const;
		expect(recallTour(JSON.stringify(left), "r")).toEqual(left);
	});

	it("begins, and opens by itself, in a demo that the browser has not seen", () => {
		const begun = { run: "r", step: "inbox", isOpen: true };
		expect(beginTour("r")).toEqual(begun);
		expect(recallTour(null, "r")).toEqual(begun);
		expect(recallTour(JSON.stringify({ run: "other", step: "wait", isOpen: false }), "r")).toEqual(begun);
	});

	it.each(["", "{", "null", "7", '{"run":"r","step":"nowhere","isOpen":false}', '{"run":"r","step":"wait"}'])(
		"begins where %j was stored",
		(stored) => {
			expect(recallTour(stored, "r")).toEqual(beginTour("r"));
		},
	);
});

describe("the steps", () => {
	it("are numbered from 1 to 7", () => {
		expect(TOUR_STEPS.map(stepNumber)).toEqual([1, 2, 3, 4, 5, 6, 7]);
	});

	it("follow each other, and end", () => {
		expect(TOUR_STEPS.map((step) => nextStep(step, 1))).toEqual([...TOUR_STEPS.slice(1), null]);
		expect(TOUR_STEPS.map((step) => nextStep(step, -1))).toEqual([null, ...TOUR_STEPS.slice(0, -1)]);
	});
});

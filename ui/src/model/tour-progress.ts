/** How far the tour of a demo has come, and whether it is open. A browser remembers it as text. */

import { TOUR_STEPS, type TourStep } from "./tour";

export interface TourProgress {
	/** The run of the demo. Another demo has another run, and a tour of its own. */
	readonly run: string;
	readonly step: TourStep;
	readonly isOpen: boolean;
}

const [FIRST] = TOUR_STEPS;

/** The tour of a demo from its first step. */
export function beginTour(run: string): TourProgress {
	return { run, step: FIRST, isOpen: true };
}

/** The tour as it was left. It opens by itself only in a demo that this browser has not seen before. */
export function recallTour(stored: string | null, run: string): TourProgress {
	const fields = readFields(stored);
	const step = TOUR_STEPS.find((each) => each === fields.step);
	if (fields.run !== run || step === undefined || typeof fields.isOpen !== "boolean") return beginTour(run);
	return { run, step, isOpen: fields.isOpen };
}

function readFields(stored: string | null): Partial<Record<keyof TourProgress, unknown>> {
	try {
		const value: unknown = JSON.parse(stored ?? "null");
		return typeof value === "object" && value !== null ? value : {};
	} catch {
		return {};
	}
}

/** The number of a step as people count: the first is 1. */
export function stepNumber(step: TourStep): number {
	return TOUR_STEPS.indexOf(step) + 1;
}

/** The step after this one or before it; null beyond the ends. */
export function nextStep(step: TourStep, by: 1 | -1): TourStep | null {
	return TOUR_STEPS[TOUR_STEPS.indexOf(step) + by] ?? null;
}

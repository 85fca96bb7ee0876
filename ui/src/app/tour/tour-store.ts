/** The tour of this window: its progress, which the browser remembers, and what has happened in the current step. */

import { createStore } from "zustand/vanilla";
import { readStoredTour, storeTour } from "../../api/demo";
import { closeWhy } from "../../components/refs/why-store";
import { toast } from "../../components/toasts";
import type { TourStep } from "../../model/tour";
import { beginTour, nextStep, recallTour, stepNumber, type TourProgress } from "../../model/tour-progress";

/** What has happened since the step began. */
interface StepVisit {
	/** Whether the page of the step is still to be opened. */
	readonly isOnTheWay: boolean;
	/** The page that was opened for the step; null if none was. */
	readonly page: string | null;
	/** Whether the target was on the page. */
	readonly wasFound: boolean;
	readonly isDone: boolean;
	/** Rises when the card should get the focus. */
	readonly focusNumber: number;
}

interface TourState {
	/** Null until a demo is known. */
	readonly progress: TourProgress | null;
	readonly visit: StepVisit;
}

const FRESH: StepVisit = { isOnTheWay: false, page: null, wasFound: false, isDone: false, focusNumber: 0 };

export const tourStore = createStore<TourState>(() => ({ progress: null, visit: FRESH }));

/** Recalls the tour of a demo, or begins it. No page is opened: a person who followed a link wants to see its page. */
export function enterDemo(run: string): void {
	if (tourStore.getState().progress?.run === run) return;
	remember(recallTour(readStoredTour(), run), FRESH);
}

/** Begins with the first step. */
export function startTour(): void {
	const { progress } = tourStore.getState();
	if (progress !== null) travel(beginTour(progress.run));
}

/** Goes on with the step at which the tour was left. */
export function resumeTour(): void {
	const { progress } = tourStore.getState();
	if (progress !== null) travel({ ...progress, isOpen: true });
}

export function goToStep(step: TourStep): void {
	const { progress } = tourStore.getState();
	if (progress !== null) travel({ ...progress, step });
}

/** Closes the card. The step is kept. */
export function leaveTour(): void {
	const { progress } = tourStore.getState();
	if (progress === null || !progress.isOpen) return;
	remember({ ...progress, isOpen: false }, FRESH);
	toast(`You left the tour at step ${stepNumber(progress.step)}. Search for “tour” to go on with it.`);
}

/** Goes to the next step, or ends the tour after the last one. */
export function goOn(step: TourStep): void {
	const next = nextStep(step, 1);
	if (next === null) finishTour();
	else goToStep(next);
}

/** Closes the card after the last step. The next tour begins with the first one. */
function finishTour(): void {
	const { progress } = tourStore.getState();
	if (progress === null) return;
	remember({ ...beginTour(progress.run), isOpen: false }, FRESH);
	toast("That was the tour. Search for “tour” to take it again.");
}

export function noteVisit(change: Partial<StepVisit>): void {
	tourStore.setState(({ visit }) => ({ visit: { ...visit, ...change } }));
}

/** Begins a step: its page opens and its card gets the focus. */
function travel(progress: TourProgress): void {
	// On a narrow window the panel would cover the page of the step.
	closeWhy();
	const { focusNumber } = tourStore.getState().visit;
	remember(progress, { ...FRESH, isOnTheWay: true, focusNumber: focusNumber + 1 });
}

function remember(progress: TourProgress, visit: StepVisit): void {
	tourStore.setState({ progress, visit });
	storeTour(JSON.stringify(progress));
}

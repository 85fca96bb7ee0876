/**
 * The seven steps of the demo's tour: their words, what each points at, and when a step is done.
 *
 * A step either shows something, or asks the person for one act. The tour goes on at any time, also without the act.
 */

import { safeText } from "./text-safety";
import type { TourDemo } from "./tour-demo";

/** The steps in their order. */
export const TOUR_STEPS = ["inbox", "approval", "line", "wait", "people", "fork", "apply"] as const;
export type TourStep = (typeof TOUR_STEPS)[number];

/** What the card of a step says. A text has at most two sentences. */
export interface StepWords {
	readonly title: string;
	readonly text: string;
	/** What the step points at: "the approval". */
	readonly target: string;
	/** What is said when the target is not on its page. */
	readonly missing: string;
	/** What is said after the act that the step asks for; null if it asks for none. */
	readonly done: string | null;
}

export function stepWords(step: TourStep, { persons }: TourDemo): StepWords {
	const [first, second] = persons.map((person) => safeText(person));
	switch (step) {
		case "inbox":
			return {
				title: "Everything that waits for you",
				text: "Approvals, questions, stalls and failures of all runs come to the inbox. The number says how many of them wait now.",
				target: "the inbox",
				missing: "The link to the inbox is not on screen.",
				done: null,
			};
		case "approval":
			return {
				title: "Answer an approval",
				text: "An agent wants to do this and waits for your decision. Approve it once, or deny it and say why.",
				target: "the approval",
				missing: "This agent has no open approval: it was answered before, or the agent has not asked yet.",
				done: "You answered it. The agent goes on with your decision.",
			};
		case "line":
			return {
				title: "Why is this line here?",
				text: "An agent wrote this line. Press its number to see what caused it, step by step, up to the person who asked.",
				target: "the line",
				missing: "The changed line is not on screen: the page was scrolled away from it, or its diff is gone.",
				done: "Each step is the cause of the one above it, in its own words. Press one to open it.",
			};
		case "wait":
			return {
				title: "Why is nothing happening?",
				text: "This agent went in circles, so the run stopped it and waits for you. Every wait has a reason, an age, and somebody who can end it.",
				target: "the wait",
				missing: "This agent does not wait any more: somebody let it go on.",
				done: null,
			};
		case "people":
			return {
				title: "One ledger, two people",
				text: `You see this ledger as ${first} does. Choose ${second} in this menu and compare: each sees what was written to everyone and to them.`,
				target: "the menu",
				missing: "The menu is not shown, because the ledger cannot be read.",
				done: `This is exactly what ${second} sees. The coloured bar says whose view it is, and leads back to yours.`,
			};
		case "fork":
			return {
				title: "Fork a history",
				text: "This button starts another history from the last turn. Nothing is copied, and this history stays as it is.",
				target: "the button",
				missing: "The button is not shown, because the history cannot be read.",
				done: "This is the new history. It shares its past with the other one and goes on by itself.",
			};
		case "apply":
			return {
				title: "Apply the work",
				text: "The agents worked in directories of their own, and this button brings their files into the repository. It lists the files and asks before it changes any.",
				target: "the button",
				missing: "The button is not shown: the run may have been deleted.",
				done: "The files are in the repository and not committed. The page suggests a commit message.",
			};
	}
}

/** What is known about the page and the demo's things; null where it is not known yet. */
export interface TourFacts {
	/** Whether the agent's approval is open. */
	readonly isApprovalOpen: boolean | null;
	/** Whether the Why panel shows the causes of a line. */
	readonly isLineExplained: boolean;
	/** Whose view of the demo's ledger is open. */
	readonly seenAs: string | null;
	/** Whether a history is open that was made while the tour was open. */
	readonly isForkOpen: boolean;
	readonly isApplied: boolean | null;
}

/** Whether the act of a step has happened. `wasFound`: whether the step's target was seen before. */
export function isStepDone(step: TourStep, demo: TourDemo, facts: TourFacts, wasFound: boolean): boolean {
	switch (step) {
		case "inbox":
		case "wait":
			return false;
		case "approval":
			// An approval that was never seen may also be one that is still to come.
			return wasFound && facts.isApprovalOpen === false;
		case "line":
			return facts.isLineExplained;
		case "people":
			return facts.seenAs === demo.persons[1];
		case "fork":
			return facts.isForkOpen;
		case "apply":
			return facts.isApplied === true;
	}
}

/** What the card says about a step. */
export type StepStatus =
	/** Its target is shown. */
	| "open"
	/** Its page is open and the target has not appeared yet. */
	| "looking"
	/** Its page is open and has no such target. */
	| "missing"
	/** Another page is open. */
	| "elsewhere"
	/** The person did the act. */
	| "done";

interface StepSight {
	readonly isDone: boolean;
	readonly isPageOpen: boolean;
	readonly isTargetShown: boolean;
	/** Whether the target had time to appear. */
	readonly isLate: boolean;
}

export function stepStatus({ isDone, isPageOpen, isTargetShown, isLate }: StepSight): StepStatus {
	if (isDone) return "done";
	if (!isPageOpen) return "elsewhere";
	if (isTargetShown) return "open";
	return isLate ? "missing" : "looking";
}

/** Selectors of what a step points at, best first; nothing once its act has taken the target away. */
export function stepSelectors(step: TourStep, demo: TourDemo, isDone: boolean): readonly string[] {
	switch (step) {
		case "inbox":
			return ['nav[aria-label="Places"] a[href="/"]'];
		case "approval":
			return isDone ? [] : [`[data-item][aria-label^="approval:"]:has([data-ref="node:${demo.approvalNode}"])`];
		case "line":
			return isDone ? ['aside[aria-label="Details"] > section:last-child'] : lineSelectors(demo);
		case "wait":
			// Not a wait of another agent that this one can end: there the agent's chip stands deeper.
			return [`[aria-label="Root causes first"] p:has(> [data-ref="node:${demo.stalledNode}"])`];
		case "people":
			return [isDone ? '[aria-label="Whose view this is"]' : '[data-tour="eyes"]'];
		case "fork":
			return isDone ? [] : ['[data-tour="fork"]'];
		case "apply":
			return isDone ? [] : ['[data-tour="apply"]'];
	}
}

/** Whether a step is about the whole page, so that its card stands under the page and not over a part of it. */
export function isAboutPage(step: TourStep, isDone: boolean): boolean {
	switch (step) {
		case "inbox":
			return true;
		case "people":
		case "fork":
		case "apply":
			return isDone;
		case "approval":
		case "line":
		case "wait":
			return false;
	}
}

/** The whole row of the line, so that its text is not covered; else another changed line of the file. */
function lineSelectors({ file, line }: TourDemo): readonly string[] {
	const label = `Why is line ${line} of ${safeText(file)} here?`;
	return [
		`div:has(> button[aria-label=${cssString(label)}])`,
		`div:has(> button[data-ref^="artifact://"][data-ref*=${cssString(`#${file}:`)}])`,
	];
}

/** A text as a string of CSS. */
function cssString(text: string): string {
	const escaped = text.replace(/["\\]|\p{Cc}/gu, (char) =>
		char === '"' || char === "\\" ? `\\${char}` : `\\${char.charCodeAt(0).toString(16)} `,
	);
	return `"${escaped}"`;
}

import { describe, expect, it } from "vitest";
import { uuid } from "./run-fixtures";
import {
	isAboutPage,
	isStepDone,
	stepSelectors,
	stepStatus,
	stepWords,
	TOUR_STEPS,
	type TourFacts,
	type TourStep,
} from "./tour";
import type { TourDemo } from "./tour-demo";

const DEMO: TourDemo = {
	run: uuid(1),
	approvalNode: uuid(2),
	stalledNode: uuid(3),
	file: "src/prices.py",
	line: 3,
	world: "shop",
	persons: ["ANN", "BOB"],
	context: "12",
};
const NOTHING_YET: TourFacts = {
	isApprovalOpen: true,
	isLineExplained: false,
	seenAs: "ANN",
	isForkOpen: false,
	isApplied: false,
};

describe("the words of a step", () => {
	it.each(TOUR_STEPS)("%s are at most two sentences", (step) => {
		const words = stepWords(step, DEMO);
		for (const text of [words.text, words.done ?? ""])
			expect(text.split(/[.?!](?:\s|$)/).length).toBeLessThanOrEqual(3);
		expect(words.missing).toMatch(/\.$/);
		expect(words.target).toMatch(/^the /);
	});

	it("name the people, with hidden characters made visible", () => {
		expect(stepWords("people", DEMO).text).toContain("Choose BOB");
		const hostile = { ...DEMO, persons: ["A", "\u202eB"] } as const;
		expect(stepWords("people", hostile).text).not.toContain("\u202e");
	});
});

describe("a step is done", () => {
	const done = (step: TourStep, change: Partial<TourFacts>, wasFound = true) =>
		isStepDone(step, DEMO, { ...NOTHING_YET, ...change }, wasFound);
	const acts: readonly (readonly [TourStep, Partial<TourFacts>])[] = [
		["approval", { isApprovalOpen: false }],
		["line", { isLineExplained: true }],
		["people", { seenAs: "BOB" }],
		["fork", { isForkOpen: true }],
		["apply", { isApplied: true }],
	];

	it.each(acts)("%s by its own act alone", (step, act) => {
		expect(TOUR_STEPS.filter((each) => done(each, act))).toEqual([step]);
		expect(done(step, {})).toBe(false);
	});

	it("never, if it only shows something", () => {
		const all = Object.assign({}, ...acts.map(([, act]) => act)) as TourFacts;
		expect(TOUR_STEPS.filter((step) => !done(step, all))).toEqual(["inbox", "wait"]);
		for (const step of TOUR_STEPS) expect(stepWords(step, DEMO).done === null).toBe(!done(step, all));
	});

	it("not before its facts are known, nor by an approval that was never seen", () => {
		expect(done("approval", { isApprovalOpen: null })).toBe(false);
		expect(done("approval", { isApprovalOpen: false }, false)).toBe(false);
		expect(done("apply", { isApplied: null })).toBe(false);
		expect(done("people", { seenAs: null })).toBe(false);
	});
});

describe("the status of a step", () => {
	const status = (isDone: boolean, isPageOpen: boolean, isTargetShown: boolean, isLate: boolean) =>
		stepStatus({ isDone, isPageOpen, isTargetShown, isLate });

	it("goes from looking to open or missing, and to done from anywhere", () => {
		expect(status(false, true, false, false)).toBe("looking");
		expect(status(false, true, true, false)).toBe("open");
		expect(status(false, true, false, true)).toBe("missing");
		expect(status(false, false, false, true)).toBe("elsewhere");
		expect(status(true, false, false, true)).toBe("done");
	});
});

describe("the target of a step", () => {
	const find = (step: TourStep, html: string, isDone = false) => {
		document.body.innerHTML = html;
		return stepSelectors(step, DEMO, isDone).flatMap((selector) => [...document.querySelectorAll(selector)])[0]?.id;
	};

	it("is the link to the inbox, and no other link to it", () => {
		const html =
			'<a href="/">x</a><nav aria-label="Places"><a id="it" href="/">Inbox</a><a href="/runs">Runs</a></nav>';
		expect(find("inbox", html)).toBe("it");
	});

	it("is the approval of the agent, and no other item of it", () => {
		const chip = (id: string) => `<a data-ref="node:${id}"></a>`;
		const item = (id: string, label: string, node: string) =>
			`<li id="${id}" data-item aria-label="${label}">${chip(node)}</li>`;
		const html =
			item("other", "approval: x", uuid(9)) + item("stall", "stalled: x", uuid(2)) + item("it", "approval: x", uuid(2));
		expect(find("approval", html)).toBe("it");
		expect(find("approval", html, true)).toBeUndefined();
	});

	it("is the row of the line, else another changed line of the file", () => {
		const row = (id: string, line: number, file: string) =>
			`<div id="${id}"><button data-ref="artifact://x#${file}:${line}" aria-label="Why is line ${line} of ${file} here?"></button></div>`;
		const other = row("other", 3, "b.py") + row("near", 2, DEMO.file);
		expect(find("line", other)).toBe("near");
		expect(find("line", other + row("it", 3, DEMO.file))).toBe("it");
	});

	it("is the panel that explains the line, after it was asked for", () => {
		const html = '<aside aria-label="Details"><section id="below"></section><section id="it"></section></aside>';
		expect(find("line", html, true)).toBe("it");
	});

	it("is the agent's own wait, and not a wait that it could end", () => {
		const chip = `<a data-ref="node:${uuid(3)}"></a>`;
		const html = `<p>${chip}</p><ol aria-label="Root causes first"><li><p id="other"><span>from ${chip}</span></p></li><li><p id="it">${chip}</p></li></ol>`;
		expect(find("wait", html)).toBe("it");
	});

	it("is the menu, and then the bar that says whose view it is", () => {
		const html =
			'<button id="menu" data-tour="eyes"></button><section id="bar" aria-label="Whose view this is"></section>';
		expect(find("people", html)).toBe("menu");
		expect(find("people", html, true)).toBe("bar");
	});

	it.each(["fork", "apply"] as const)("is the button of %s until it was pressed", (step) => {
		const html = `<button id="it" data-tour="${step}"></button>`;
		expect(find(step, html)).toBe("it");
		expect(find(step, html, true)).toBeUndefined();
	});

	it("stays in its quotes, whatever a file is called", () => {
		const [row] = stepSelectors("line", { ...DEMO, file: '"], a\\' }, false);
		expect(row).toBe(String.raw`div:has(> button[aria-label="Why is line 3 of \"], a\\ here?"])`);
		const [, near] = stepSelectors("line", { ...DEMO, file: "a\nb" }, false);
		expect(near).toBe(String.raw`div:has(> button[data-ref^="artifact://"][data-ref*="#a\a b:"])`);
	});

	it("leaves the whole page free where the step is about it", () => {
		expect(TOUR_STEPS.filter((step) => isAboutPage(step, false))).toEqual(["inbox"]);
		expect(TOUR_STEPS.filter((step) => isAboutPage(step, true))).toEqual(["inbox", "people", "fork", "apply"]);
	});
});

/** What every page must fulfil: no serious accessibility fault in either theme, no sideways scrolling, nothing out of reach. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Harness } from "./harness.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const WIDE = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };
/** What a window of 1280 by 800 pixels has left at a zoom of 200 %. */
export const ZOOMED = { width: 640, height: 400 };

export type CheckedPage = Harness["page"];

/** Waits until nothing on the page is a placeholder of what is being fetched. */
export function untilLoaded(page: CheckedPage): Promise<void> {
	return page
		.getByRole("status", { name: /^Loading/ })
		.first()
		.waitFor({ state: "detached" });
}

/**
 * Serious and critical findings of axe, each with its places.
 *
 * Only colours differ between the themes, so the dark one is checked for them alone. The rules are evaluated, because
 * the policy of the page forbids scripts in the page.
 */
export async function axeFaults(page: CheckedPage, themes: readonly Theme[] = ["light", "dark"]): Promise<string[]> {
	await page.evaluate(AXE);
	const faults: string[] = [];
	for (const theme of themes) {
		await page.emulateMedia({ colorScheme: theme });
		const found = await page.evaluate(runAxe, theme === "light" ? LIGHT_RULES : DARK_RULES);
		faults.push(...found.map((fault) => `${theme}: ${fault}`));
	}
	await page.emulateMedia({ colorScheme: "light" });
	return faults;
}

export type Theme = "light" | "dark";

/** The rule about the size of targets is of WCAG 2.2, and axe does not apply it unless told so. */
const LIGHT_RULES = { rules: { "target-size": { enabled: true } } };
const DARK_RULES = { runOnly: ["color-contrast"] };

async function runAxe(options: object): Promise<string[]> {
	interface Fault {
		readonly id: string;
		readonly impact: string | null;
		readonly nodes: readonly { readonly html: string }[];
	}
	interface Axe {
		run(root: Document, options: object): Promise<{ readonly violations: readonly Fault[] }>;
	}
	const { axe } = window as unknown as { axe: Axe };
	const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
	const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
	return serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 300)).join(" | ")}`);
}

/** By how many pixels the page is wider than the window. */
export function sidewaysPixels(page: CheckedPage): Promise<number> {
	return page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}

/**
 * The controls of the page that cannot be used in this window: scrolled to, they stand outside of it, or something
 * else covers them.
 */
export function controlsOutOfReach(page: CheckedPage): Promise<string[]> {
	return page.evaluate(() => {
		// The link that skips to the content is shown when it has the focus.
		const kinds = "a[href]:not([href^='#']), button, input, select, textarea, summary";
		const controls = document.querySelectorAll<HTMLElement>(kinds);
		// A drawer may cover the page in a narrow window: closing it uncovers what is under it.
		const drawer = document.querySelector("button[aria-label='Close details']")?.closest("section");
		const isReachable = (control: HTMLElement) => {
			control.scrollIntoView({ block: "center", inline: "nearest" });
			// A link that is broken over two lines has its middle between them.
			return [...control.getClientRects()].some(({ left, top, width, height }) => {
				const [x, y] = [left + width / 2, top + height / 2];
				const found = document.elementFromPoint(x, y);
				if (found === null) return false;
				const isHere = control.contains(found) || found.contains(control) || hasLabel(control, found);
				return isHere || drawer?.contains(found);
			});
		};
		const hasLabel = (control: HTMLElement, found: Element) =>
			control instanceof HTMLInputElement && [...(control.labels ?? [])].some((label) => label.contains(found));
		const isShown = (control: HTMLElement) =>
			control.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
			control.closest(".visually-hidden, .react-flow, .xterm, [aria-hidden='true']") === null;
		const words = (control: HTMLElement) =>
			`${control.tagName.toLowerCase()} “${(control.getAttribute("aria-label") ?? control.textContent ?? "").slice(0, 60)}”`;
		return [...controls].filter((control) => isShown(control) && !isReachable(control)).map(words);
	});
}

/** Cells of tables that are so narrow that their words stand one letter below the other. */
export function squeezedCells(page: CheckedPage): Promise<string[]> {
	return page.evaluate(() => {
		const pixelsMin = 30;
		const cells = [...document.querySelectorAll<HTMLElement>("td, th")];
		const isSqueezed = (cell: HTMLElement) => cell.textContent.trim().length > 3 && cell.clientWidth < pixelsMin;
		return cells.filter(isSqueezed).map((cell) => cell.textContent.trim().slice(0, 60));
	});
}

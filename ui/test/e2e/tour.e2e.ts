/** The tour of a real demo: all seven steps with their acts, left and resumed, in a wide window and on a phone. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "./agent-runs.ts";
import { type Demo, startDemo } from "./demo.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WINDOWS = [
	{ name: "a wide window", viewport: { width: 1280, height: 800 }, isPhone: false },
	{ name: "a phone", viewport: { width: 390, height: 844 }, isPhone: true },
] as const;

// The tests of a window follow each other: each begins where the one before it ended.
describe.each(WINDOWS)("on $name", ({ viewport, isPhone }) => {
	let demo: Demo;
	beforeAll(async () => {
		demo = await startDemo(viewport);
		await untilReady(demo);
	});
	afterAll(() => demo?.stop());

	const card = () =>
		demo.page.getByRole("region").filter({ has: demo.page.getByRole("button", { name: "Leave the tour" }) });
	const ring = () => card().locator("xpath=following-sibling::div[1]");
	const next = () => card().getByRole("button", { name: "Next", exact: true }).click();
	const untilStep = (number: number) => card().getByText(`Tour, ${number} of 7`).waitFor();
	const untilDone = () => card().getByText("✓ Done.").waitFor();
	const heading = () => demo.page.locator("h1").textContent();

	/** Waits until the target is shown with the ring, and no point of the card stands over it. */
	async function expectFree(target: Locator): Promise<void> {
		await target.waitFor();
		await ring().waitFor();
		await expect.poll(() => touches(target, ring())).toBe(true);
		await expect.poll(() => touches(target, card())).toBe(false);
		await expectInWindow(card());
	}

	async function expectInWindow(element: Locator): Promise<void> {
		const box = await element.boundingBox();
		expect(box).not.toBeNull();
		if (box === null) return;
		expect(Math.min(box.x, box.y)).toBeGreaterThanOrEqual(0);
		expect(box.x + box.width).toBeLessThanOrEqual(viewport.width);
		expect(box.y + box.height).toBeLessThanOrEqual(viewport.height);
	}

	async function openSearch(): Promise<void> {
		if (isPhone) await demo.page.getByRole("button", { name: "Search" }).click();
		else await demo.page.keyboard.press("Control+k");
	}

	test("the link opens the inbox, and the tour begins there by itself", async () => {
		const { page } = demo;
		await page.goto(demo.link);
		await page.locator('[data-connection="connected"]').waitFor();
		await untilStep(1);
		const link = page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: /^Inbox \d+ waiting$/ });
		await expectFree(link);
		// The step is about the whole page, which the card leaves free.
		expect(await touches(page.getByRole("main"), card())).toBe(false);
		await axeFindsNothing(demo);
	});

	test("an approval is answered", async () => {
		const { page, things } = demo;
		await next();
		await untilStep(2);
		const item = page
			.getByRole("listitem", { name: /^approval:/ })
			.filter({ has: page.locator(`[data-ref="node:${things.approval_node}"]`) });
		await expectFree(item);
		await axeFindsNothing(demo);
		await item.getByRole("button", { name: "Approve once" }).click();
		await untilDone();
	});

	test("a changed line is explained up to a person", async () => {
		const { page, things } = demo;
		await next();
		await untilStep(3);
		const number = page.getByRole("button", { name: `Why is line ${things.line} of ${things.file} here?` });
		await expectFree(number.locator("xpath=.."));
		await number.click();
		await untilDone();
		const panel = page.getByRole("region", { name: "Why is this here?" });
		await panel.getByText("The chain ends at a person.").waitFor();
		await expectFree(panel);
	});

	test("the wait of the stalled agent says its reason", async () => {
		const { page, things } = demo;
		await next();
		await untilStep(4);
		await expect.poll(heading).toBe("Why is nothing happening?");
		const wait = page
			.getByRole("list", { name: "Root causes first" })
			.locator("p")
			.filter({ has: page.locator(`[data-ref="node:${things.node_stalled}"]`) })
			.first();
		await expectFree(wait);
		expect(await card().getByText("✓ Done.").count()).toBe(0);
	});

	test("the tour is left, stays closed after a reload, and is resumed from the search", async () => {
		const { page } = demo;
		if (isPhone) await card().getByRole("button", { name: "Leave the tour" }).click();
		else await page.keyboard.press("Escape");
		await card().waitFor({ state: "detached" });
		await page.getByText("You left the tour at step 4.").first().waitFor();
		await page.goto("/history");
		await expect.poll(heading).toBe("History");
		expect(await card().count()).toBe(0);
		await openSearch();
		await page.getByRole("combobox", { name: "Search" }).fill("tour");
		await page.getByRole("option", { name: "Resume the tour" }).click();
		await untilStep(4);
		await expect.poll(heading).toBe("Why is nothing happening?");
		const title = card().getByRole("heading");
		await expect.poll(() => title.evaluate((element) => element === document.activeElement)).toBe(true);
		// The keys go from the card to what it explains, and back.
		await ring().waitFor();
		await page.keyboard.press("t");
		await expect.poll(() => title.evaluate((element) => element === document.activeElement)).toBe(false);
		await page.keyboard.press("t");
		await expect.poll(() => title.evaluate((element) => element === document.activeElement)).toBe(true);
	});

	test("a ledger is seen as two people", async () => {
		const { page, things } = demo;
		const [first, second] = things.persons;
		await next();
		await untilStep(5);
		const menu = page.getByRole("button", { name: /^Seeing as:/ });
		await expectFree(menu);
		expect(new URL(page.url()).searchParams.get("as")).toBe(first);
		await menu.click();
		await page.getByRole("menuitem", { name: new RegExp(`(^|\\()${second.replaceAll(".", "\\.")}\\)?$`) }).click();
		await untilDone();
		await expectFree(page.getByRole("region", { name: "Whose view this is" }));
		// The step is about what this person sees, which the card leaves free.
		const entries = page.getByRole("list", { name: "Entries" });
		await entries.waitFor();
		expect(await touches(entries, card())).toBe(false);
	});

	test("a history is forked", async () => {
		const { page, things } = demo;
		await next();
		await untilStep(6);
		const button = page.getByRole("button", { name: "Fork from the head" });
		await expectFree(button);
		await button.click();
		await page
			.getByRole("dialog")
			.getByRole("button", { name: /^Fork from turn/ })
			.click();
		await untilDone();
		expect(new URL(page.url()).pathname).toMatch(/^\/history\/\d+$/);
		expect(new URL(page.url()).pathname).not.toBe(`/history/${things.context}`);
	});

	test("another page is said to be one, and Back goes a step back", async () => {
		const { page } = demo;
		await next();
		await untilStep(7);
		await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Sessions" }).click();
		await card().getByText("This step is on another page.").waitFor();
		await card().getByRole("button", { name: "Back" }).click();
		await untilStep(6);
		// The fork that was made before does not make the step done again.
		await expectFree(page.getByRole("button", { name: "Fork from the head" }));
		await card().getByRole("button", { name: "Next", exact: true }).click();
		await untilStep(7);
	});

	test("the work is applied, and the tour ends", async () => {
		const { page } = demo;
		await untilStep(7);
		const button = page.getByRole("main").getByRole("button", { name: /^Apply \d+ files? to/ });
		await expectFree(button);
		await button.click();
		await page
			.getByRole("dialog")
			.getByRole("button", { name: /^Apply \d+ files?$/ })
			.click();
		await untilDone();
		await page.getByText("A commit message for them:").first().waitFor();
		await axeFindsNothing(demo);
		await card().getByRole("button", { name: "Finish" }).click();
		await card().waitFor({ state: "detached" });
		await page.getByText("That was the tour.").first().waitFor();
		await openSearch();
		await page.getByRole("combobox", { name: "Search" }).fill("tour");
		await page.getByRole("option", { name: "Start the tour" }).waitFor();
		expect(await page.getByRole("option", { name: "Resume the tour" }).count()).toBe(0);
		expect(demo.consoleErrors.filter((error) => !/status of 404/.test(error))).toEqual([]);
	});

	test("the demo leaves nothing behind", async () => {
		expect(await demo.end()).toEqual([]);
	});
});

/** Waits until everything that the tour points at is there. */
async function untilReady({ things, get }: Demo): Promise<void> {
	interface Attention {
		readonly items: readonly { readonly kind: string; readonly nodeId?: string | null }[];
	}
	interface Run {
		readonly run: {
			readonly artifacts: Readonly<Record<string, { readonly metadata?: { filesChanged: string[] } | null }>>;
		};
	}
	const minute = 60_000;
	await until(
		async () => {
			const { items } = await get<Attention>("/api/attention");
			const waits = (kind: string, node: string) => items.some((item) => item.kind === kind && item.nodeId === node);
			return waits("approval", things.approval_node) && waits("stall", things.node_stalled);
		},
		"an approval and a stall",
		minute,
	);
	await until(
		async () => {
			const { run } = await get<Run>(`/api/runs/${things.run}`);
			return Object.values(run.artifacts).some(({ metadata }) => metadata?.filesChanged.includes(things.file));
		},
		"a diff of the file",
		minute,
	);
}

/** Whether a point of `over` has the element under it. What a box cuts off is under nothing. */
async function touches(element: Locator, over: Locator): Promise<boolean> {
	const box = await over.boundingBox();
	if (box === null) return false;
	return element.evaluate((target, { x, y, width, height }) => {
		const POINTS = 24;
		for (let across = 0; across <= POINTS; across += 1)
			for (let down = 0; down <= POINTS; down += 1) {
				const found = document.elementsFromPoint(x + (width * across) / POINTS, y + (height * down) / POINTS);
				if (found.some((each) => target.contains(each))) return true;
			}
		return false;
	}, box);
}

/** The axe rules are evaluated, because the policy of the page forbids scripts in the page. */
async function axeFindsNothing({ page }: Demo): Promise<void> {
	await page.evaluate(AXE);
	expect(await page.evaluate(seriousFaults)).toEqual([]);
}

async function seriousFaults(): Promise<string[]> {
	interface Fault {
		readonly id: string;
		readonly impact: string | null;
		readonly nodes: readonly { readonly html: string }[];
	}
	const { axe } = window as unknown as { axe: { run(): Promise<{ violations: Fault[] }> } };
	const { violations } = await axe.run();
	const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
	return serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 300)).join(" | ")}`);
}

/** The shell in a real browser: keys, search, theme, narrow windows, accessibility, and a server that goes and comes. */

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Harness, startHarness } from "./harness.ts";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const PAGES = [
	"/",
	"/runs",
	"/runs/new",
	"/sessions",
	"/ledgers",
	"/ledgers/default",
	"/history",
	"/system/health",
	"/signin",
	"/nowhere",
];

let harness: Harness;
beforeAll(async () => {
	harness = await startHarness();
});
afterAll(() => harness?.stop());
afterEach(() => harness.page.setViewportSize({ width: 1280, height: 800 }));

const heading = () => harness.page.locator("h1").textContent();

describe("keys", () => {
	test("g and a letter go to a place, and Back returns", async () => {
		const { page } = harness;
		await harness.open("/");
		await page.keyboard.press("g");
		await page.keyboard.press("l");
		await expect.poll(heading).toBe("Ledgers");
		await page.goBack();
		await expect.poll(heading).toBe("Inbox");
	});

	test("Ctrl-K finds an action, Enter does it, and the focus comes back from Esc", async () => {
		const { page } = harness;
		await harness.open("/");
		const search = page.getByRole("button", { name: "Search" });
		await search.focus();
		await page.keyboard.press("Control+k");
		await page.getByRole("combobox", { name: "Search" }).waitFor();
		await page.keyboard.press("Escape");
		await expect.poll(() => search.evaluate((element) => element === document.activeElement)).toBe(true);
		await page.keyboard.press("Control+k");
		await page.getByRole("combobox", { name: "Search" }).fill(">types");
		await harness.screenshot("search");
		await page.keyboard.press("Enter");
		await expect.poll(heading).toBe("Types");
	});

	test("a pasted ref opens", async () => {
		const { page } = harness;
		await harness.open("/");
		await page.keyboard.press("Control+k");
		await page.getByRole("combobox", { name: "Search" }).fill("world:default");
		await page.keyboard.press("Enter");
		await expect.poll(() => page.url()).toBe(`${harness.uiUrl}/ledgers/default`);
	});

	test("? lists the keys", async () => {
		const { page } = harness;
		await harness.open("/");
		await page.keyboard.press("?");
		await page.getByRole("dialog", { name: "Keys of this page" }).waitFor();
		expect(await page.getByText("go to Ledgers").count()).toBe(1);
		await harness.screenshot("keys");
		await page.keyboard.press("Escape");
	});
});

test("the theme is set and kept", async () => {
	const { page } = harness;
	await harness.open("/");
	await page.getByRole("button", { name: "Theme" }).click();
	await page.getByRole("menuitem", { name: "Dark" }).click();
	const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
	await expect.poll(ground).toBe("rgb(21, 23, 26)");
	await page.reload();
	await page.waitForSelector("h1");
	expect(await ground()).toBe("rgb(21, 23, 26)");
	await harness.screenshot("dark");
	await page.getByRole("button", { name: "Theme" }).click();
	await page.getByRole("menuitem", { name: "Follow the system" }).click();
});

test.each(PAGES)("%s fits a phone", async (path) => {
	const { page } = harness;
	await page.setViewportSize({ width: 390, height: 780 });
	await harness.open(path);
	await harness.connected();
	const overflow = await page.evaluate(
		() => document.documentElement.scrollWidth - document.documentElement.clientWidth,
	);
	expect(overflow).toBe(0);
	await harness.screenshot(`phone${path.replace(/[^a-z]+/g, "-").replace(/-$/, "") || "-inbox"}`);
});

describe.each(["light", "dark"] as const)("in %s, axe finds nothing serious", (colorScheme) => {
	test.each(PAGES)("on %s", async (path) => {
		const { page } = harness;
		await page.emulateMedia({ colorScheme });
		await harness.open(path);
		await harness.connected();
		await page.waitForLoadState("load");
		await page.evaluate(await readFile(AXE, "utf8"));
		const faults = await page.evaluate(async () => {
			const { axe } = window as unknown as { axe: { run(): Promise<{ violations: Fault[] }> } };
			const { violations } = await axe.run();
			const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
			return serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
		});
		expect(faults).toEqual([]);
	});
});

interface Fault {
	readonly id: string;
	readonly impact: string | null;
	readonly nodes: readonly { readonly html: string }[];
}

test("a server that goes and comes is said honestly", async () => {
	const { page } = harness;
	await harness.open("/system/about");
	await harness.connected();
	await harness.stopServer();
	await page.locator('[data-connection="reconnecting"], [data-connection="stopped"]').waitFor();
	await harness.screenshot("reconnecting");
	await harness.startServer();
	await harness.connected();
});

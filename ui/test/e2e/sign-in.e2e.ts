/** Signing in: the page that was wanted survives. */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, startHarness } from "./harness.ts";

let harness: Harness;
let page: Page;
beforeAll(async () => {
	harness = await startHarness();
	page = await harness.context.newPage();
});
afterAll(() => harness?.stop());

const connected = () => page.locator('[data-connection="connected"]').waitFor();
const signIn = async () => {
	await page.getByLabel("Token").fill(harness.token);
	await page.getByRole("button", { name: "Sign in" }).click();
};

const openSignedIn = async (path: string) => {
	await page.goto(`${harness.serverUrl}/?token=${harness.token}`);
	await page.goto(`${harness.serverUrl}${path}`);
	await connected();
};

test("a deep link asks for the token and then opens", async () => {
	await harness.context.clearCookies();
	await page.goto(`${harness.serverUrl}/system/about?x=1`);
	await signIn();
	await connected();
	expect(page.url()).toBe(`${harness.serverUrl}/system/about?x=1`);
});

/** Takes the window's cookie away. The stream is refused when it opens again, whatever the page does meanwhile. */
const signOut = async () => {
	await harness.context.clearCookies();
	await harness.stopServer();
	await harness.startServer();
	await page.getByRole("heading", { name: "Sign in" }).waitFor();
};

test("a window that is signed out says so, and goes on where it was", async () => {
	await openSignedIn("/ledgers/default");
	await signOut();
	await signIn();
	await connected();
	expect(page.url()).toBe(`${harness.serverUrl}/ledgers/default`);
});

test("what was typed into a form is there again after signing in", async () => {
	await openSignedIn("/ledgers");
	const dialog = page.getByRole("dialog");
	await page.getByRole("button", { name: "Open a new ledger" }).first().click();
	await dialog.getByLabel("Name", { exact: true }).fill("payments");
	await signOut();
	await signIn();
	await connected();
	await expect.poll(() => dialog.getByLabel("Name", { exact: true }).inputValue()).toBe("payments");
	await dialog.getByRole("button", { name: "Open the ledger payments" }).click();
	await page.getByRole("heading", { name: "payments" }).waitFor();
});

test("the printed link opens the page, without the token in the address", async () => {
	await harness.context.clearCookies();
	await page.goto(`${harness.serverUrl}/?token=${harness.token}`);
	await connected();
	expect(page.url()).toBe(`${harness.serverUrl}/`);
});

/** The page in the archive of `turnkeep run export`, opened as a file: it needs no server and no network. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeHostileRun, makeShopRun, scriptedConfig } from "./agent-runs.ts";
import { BINARY, type Harness, launchBrowser, openWindow, startHarness } from "./harness.ts";
import { axeFaults, PHONE, sidewaysPixels } from "./page-checks.ts";
import { unpackZip } from "./zip.ts";

const scripts = mkdtempSync(join(tmpdir(), "turnkeep-export-"));
let harness: Harness;
let shop: string;
let hostile: string;

/** Exports a run and unpacks it; resolves to the address of its page. */
async function exportRun(run: string, name: string): Promise<string> {
	const [file, folder] = [join(scripts, `${name}.zip`), join(scripts, name)];
	await harness.cli(["run", "export", run, "-o", file]);
	unpackZip(file, folder);
	return pathToFileURL(join(folder, "index.html")).href;
}

beforeAll(async () => {
	harness = await startHarness({ config: scriptedConfig(scripts, BINARY) });
	const { api, workDir } = harness;
	const runs = [await makeShopRun(api, join(workDir, "shop")), await makeHostileRun(api, join(workDir, "evil"))];
	[shop = "", hostile = ""] = [await exportRun(runs[0]?.id ?? "", "shop"), await exportRun(runs[1]?.id ?? "", "evil")];
	// The pages must need nothing of it.
	await harness.stopServer();
});
afterAll(async () => {
	await harness?.stop();
	rmSync(scripts, { recursive: true, force: true });
});

/** Opens a page in a window of its own, where every request but those for files fails and is noted. */
async function openFile(href: string) {
	const browser = await launchBrowser();
	const { page, consoleErrors } = await openWindow(browser, href, {});
	const requests: string[] = [];
	page.on("request", (request) => {
		if (!request.url().startsWith("file:")) requests.push(request.url());
	});
	await page.context().setOffline(true);
	await page.goto(href);
	return { page, consoleErrors, requests, close: () => browser.close() };
}

test("the page of an export shows the run without a server", async () => {
	const { page, consoleErrors, requests, close } = await openFile(shop);
	try {
		await page.getByRole("heading", { name: "Read and print orders" }).waitFor();
		expect(await page.title()).toContain("Read and print orders");
		for (const agent of ["lead", "parser", "printer"])
			await page.getByRole("button", { name: agent }).first().waitFor();
		const timeline = page.getByRole("region", { name: "Timeline" });
		await timeline.getByText("Please split the work in two.").waitFor();
		await timeline.getByText("Answer: approved over the API").waitFor();
		await timeline.getByText("+def parse(text):").waitFor();
		await timeline.getByText("All done.").waitFor();
		await page.getByRole("searchbox").fill("missing newline");
		await timeline.getByText("Please split the work in two.").waitFor({ state: "hidden" });
		await timeline.getByText("The check found a missing newline.").waitFor();
		expect(await axeFaults(page)).toEqual([]);
		await page.setViewportSize(PHONE);
		expect(await sidewaysPixels(page)).toBeLessThanOrEqual(0);
		expect(requests).toEqual([]);
		expect(consoleErrors).toEqual([]);
	} finally {
		await close();
	}
});

test("nothing that an agent said is obeyed in it, and hidden characters are seen", async () => {
	const { page, consoleErrors, requests, close } = await openFile(hostile);
	try {
		await page.getByText("<script>document.title='owned'</script><img src=x").first().waitFor();
		await page.getByText("⟨U+202E⟩txt.exe").first().waitFor();
		expect(await page.title()).not.toBe("owned");
		expect(await page.locator("#page img, #page script").count()).toBe(0);
		expect(requests).toEqual([]);
		expect(consoleErrors).toEqual([]);
	} finally {
		await close();
	}
});

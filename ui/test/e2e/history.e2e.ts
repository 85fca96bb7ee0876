/** Histories in a real browser: forks as lanes, turns in every form, bad turns, forks, blobs, and 10 000 turns. */

import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, startHarness } from "./harness.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** One pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const MANY_TURNS = 10_000;
/** So many turns are appended by one request. */
const TURNS_AT_ONCE = 500;

/** The type of the turns: a text with the tag 1. */
const NOTES = {
	registry_version: 1,
	bundle_id: "notes#1",
	types: {
		"turnkeep.Note": {
			versions: {
				"1": {
					fields: { "1": { name: "text", type: "string" }, "2": { name: "role", type: "string", optional: true } },
				},
			},
		},
	},
	enums: {},
};

let harness: Harness;
let main = "";
let fork = "";
const ids: string[] = [];

interface Context {
	readonly context_id: string;
	readonly head_turn_id: string;
}

const createContext = (labels: Record<string, string>) =>
	harness.api<Context>("/v1/contexts", { body: { labels } }).then(({ context_id }) => context_id);

async function append(context: string, body: Record<string, unknown>): Promise<string> {
	const type = { type_id: "turnkeep.Note", type_version: 1 };
	const ack = await harness.api<{ turn_id: string }>(`/v1/contexts/${context}/append`, { body: { ...type, ...body } });
	return ack.turn_id;
}

const base64 = (bytes: string) => Buffer.from(bytes, "latin1").toString("base64");
const turnRow = (id: string) => harness.page.locator(`[data-ref="turn:${id}"][data-item]`);

async function seriousFaults(): Promise<string[]> {
	await harness.page.evaluate(AXE);
	return harness.page.evaluate(async () => {
		const { axe } = window as unknown as {
			axe: { run(): Promise<{ violations: { id: string; impact: string | null; nodes: { html: string }[] }[] }> };
		};
		const { violations } = await axe.run();
		const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
		return serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
	});
}

beforeAll(async () => {
	harness = await startHarness();
});
afterAll(() => harness?.stop());

test("without a history the program that makes one is there", async () => {
	await harness.open("/history");
	await harness.page.getByText("await client.createContext()").waitFor();
});

test("a history appears with its labels, and a label filters", async () => {
	const { page } = harness;
	main = await createContext({ agent: "planner" });
	await createContext({ agent: "other" });
	await harness.cli(["registry", "put", "-"], JSON.stringify(NOTES));
	for (const text of ["First.", "Second.", "<script>alert(1)</script> \u202eevil \u001b[31mred"]) {
		ids.push(await append(main, { data: { text } }));
	}
	ids.push(await append(main, { payload_b64: base64("\xff\xffbroken") }));
	ids.push(await append(main, { data: { text: "The head." } }));
	const base = { base_turn_id: ids[1], labels: { try: "again" } };
	fork = (await harness.api<Context>("/v1/contexts/fork", { body: base })).context_id;
	await append(fork, { data: { text: "Another way." } });
	await page.getByRole("button", { name: "agent=planner" }).click();
	await expect.poll(() => page.locator("tbody tr").count()).toBe(1);
	await page.getByRole("link", { name: main, exact: true }).click();
	await page.getByRole("heading", { name: `History ${main}` }).waitFor();
});

test("forks are lanes, a bad turn says why, hostile text is text, and a new turn comes by itself", async () => {
	const { page } = harness;
	await page.getByText(`history ${fork} · try=again`).waitFor();
	expect(await turnRow(ids[2] ?? "").textContent()).toContain("<script>alert(1)</script> ⟨RLO⟩evil red");
	expect(await turnRow(ids[3] ?? "").textContent()).toContain("DecodeError");
	await page.getByText("live head").waitFor();
	const newest = await append(main, { data: { text: "Fresh words." } });
	await turnRow(newest).getByText("Fresh words.").waitFor();
	expect(await page.locator("[data-item]").first().textContent()).toContain("Fresh words.");
});

test("a turn is shown typed, raw and both, by keyboard, and the URL restores it", async () => {
	const { page } = harness;
	await turnRow(ids[0] ?? "").focus();
	await page.keyboard.press("k");
	await page.keyboard.press("Enter");
	await page.getByRole("heading", { name: `Turn ${ids[1]}` }).waitFor();
	const drawer = page.getByRole("region", { name: `Turn ${ids[1]}` });
	await drawer.getByText("Second.").waitFor();
	await drawer.getByRole("button", { name: "both" }).click();
	await drawer.getByText("Rendering options").click();
	await drawer.getByLabel("Bytes", { exact: true }).selectOption("hex");
	await drawer.getByText(/^81 ?01|^8101/).waitFor();
	expect(page.url()).toContain("view=both");
	await page.reload();
	await page.getByText(/^81 ?01|^8101/).waitFor();
	await harness.open(`/history/${main}/turns/${ids[3]}`);
	await page.getByText("This turn cannot be shown by its fields; its bytes are below.").waitFor();
	await page.getByText(base64("\xff\xffbroken")).waitFor();
});

test("a fork is made from a turn, and two histories are compared from their common turn", async () => {
	const { page } = harness;
	await page.getByRole("button", { name: "Fork from here" }).click();
	const dialog = page.getByRole("dialog");
	await dialog.getByRole("textbox").fill("nonsense");
	await dialog.getByText("“nonsense” is not of the form key=value").first().waitFor();
	await dialog.getByRole("textbox").fill("agent=reviewer");
	await dialog.getByRole("button", { name: /^Fork from turn/ }).click();
	await page.getByText("agent=reviewer").first().waitFor();
	await harness.open(`/history/compare?a=${main}&b=${fork}`);
	await page.getByText("They share 2 turns, up to").waitFor();
	await page.getByText("Another way.").waitFor();
	await harness.screenshot("history-compare");
});

test("a blob is shown as JSON, text, image and hex", async () => {
	const { page } = harness;
	const put = async (name: string, bytes: Buffer) => {
		const file = join(harness.workDir, name);
		await writeFile(file, bytes);
		return /[0-9a-f]{64}/.exec(await harness.cli(["blob", "put", file]))?.[0] ?? "";
	};
	const hash = await put("answer.json", Buffer.from('{"answer":"<b>42</b>"}'));
	await harness.open(`/blobs/${hash}`);
	await page.getByText("<b>42</b>").waitFor();
	await page.getByRole("button", { name: "hex" }).click();
	await page.getByText("7b 22 61 6e").first().waitFor();
	await page.getByRole("button", { name: "text" }).click();
	await page.getByText('{"answer":"<b>42</b>"}').waitFor();
	await harness.open(`/blobs/${await put("dot.png", Buffer.from(PNG, "base64"))}`);
	const image = page.getByRole("img", { name: /The content of blob/ });
	await expect.poll(() => image.evaluate((each: HTMLImageElement) => each.naturalWidth)).toBe(1);
	await harness.open(`/blobs/${"0".repeat(64)}`);
	await page.getByRole("heading", { name: "Not found" }).waitFor();
});

test("10 000 turns open in time, and only those in view are in the page", async () => {
	const { page } = harness;
	const { connect, encodeTagged } = await import("../../../clients/ts/src/node/index.ts");
	const client = await connect(harness.binaryAddress, { token: harness.token });
	const { contextId } = await client.createContext();
	const type = { id: "turnkeep.Note", version: 1 };
	for (let sent = 0; sent < MANY_TURNS; sent += TURNS_AT_ONCE) {
		const turns = Array.from({ length: TURNS_AT_ONCE }, (_, at) => ({
			type,
			payload: encodeTagged({ 1: `Turn number ${sent + at}.` }),
		}));
		await client.appendBatch({ contextId, turns, key: `batch-${sent}` });
	}
	client.close();
	await harness.open("/history");
	const began = Date.now();
	await page.getByRole("link", { name: String(contextId), exact: true }).click();
	await page.getByText("Turn number 9999.").waitFor();
	console.info(`10 000 turns: ${Date.now() - began} ms`);
	expect(await page.locator("[data-item]").count()).toBeLessThan(100);
	await page.keyboard.press("Tab");
	await page.locator("ul[aria-label='Turns, newest first']").evaluate((list) => {
		const scroller = list.parentElement;
		if (scroller !== null) scroller.scrollTop = scroller.scrollHeight;
	});
	await page.getByText("Turn number 0.", { exact: true }).waitFor();
});

test.each(["light", "dark"] as const)("in %s, axe finds nothing serious", async (colorScheme) => {
	const { page } = harness;
	await page.emulateMedia({ colorScheme });
	const paths = ["/history", `/history/${main}/turns/${ids[2]}`, `/history/compare?a=${main}&b=${fork}`];
	for (const path of paths) {
		await harness.open(path);
		await harness.connected();
		await page.locator("[data-item], tbody tr").first().waitFor();
		expect(await seriousFaults(), path).toEqual([]);
	}
});

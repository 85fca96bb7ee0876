/** Ledgers as a person uses them: made, written as the operator and as others, searched, quoted, audited, compared, opened to an agent. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, startHarness } from "./harness.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const HOSTILE = "<img src=x onerror=\"document.title='owned'\"> \u202egnp.exe \u001b[31mred";
const SECRET = "Look twice at the ledger migration.";
const PLAN = "CODER takes the rounding test; REVIEWER checks by 15:00.";
/** More than are read at first, so that earlier ones come on request. */
const MANY = 8 * 64;

let h: Harness;
let plan: string;
let secret: string;

beforeAll(async () => {
	h = await startHarness();
});
afterAll(() => h?.stop());

function envelope(request_id: string, input_text = "") {
	return {
		request_id,
		invoker: { invoker_id: "test", invoker_role: "INVOKER" },
		operator: { operator_id: "GEORGE", input_text },
		mode: { kind: "BEAT" },
	};
}

interface Proposed {
	readonly text: string;
	readonly to?: readonly string[];
}

let requests = 0;

/** Writes as a person; the ids of the entries. */
async function write(world: string, person: string, entries: readonly Proposed[], pocket: readonly unknown[] = []) {
	requests += 1;
	const request_id = `seed-${requests}`;
	const proposed = entries.map(({ text, to }) => ({
		request_id,
		author: { author_id: person, author_class: "PERSON" },
		visibility: to === undefined ? { scope: "PUBLIC" } : { scope: "PRIVATE", visible_to: to },
		channel: "PEOPLE",
		text,
	}));
	const bundle = { request_id, proposed_by: { engine: "test", actor: person }, wrote: true, entries: proposed };
	const body = { envelope: envelope(request_id), bundle: { ...bundle, pocket_items: pocket } };
	const answer = await h.api<{ bundle: { entries: { entry_id: string }[] } }>(
		`/v1/worlds/${world}/beats?as=${person}`,
		{ body },
	);
	return answer.bundle.entries.map(({ entry_id }) => entry_id);
}

const inStream = (text: string) => h.page.getByRole("list", { name: "Entries" }).getByText(text);

test("a ledger is made by its form, and what the operator says stands in its stream", async () => {
	const { page } = h;
	await h.open("/ledgers");
	await h.connected();
	await page.getByRole("link", { name: "default" }).waitFor();
	await page.getByRole("button", { name: "Open a new ledger" }).click();
	await page.getByLabel("Name", { exact: true }).fill("default");
	await page.getByRole("button", { name: "Open the ledger default" }).click();
	await page.getByText("409 NAME_TAKEN").waitFor();
	await page.getByLabel("Name", { exact: true }).fill("payments");
	await page.getByRole("textbox", { name: "People" }).fill("PLANNER Planner\nCODER\nREVIEWER");
	await page.getByText("Your label, time zone").click();
	await page.getByLabel("Your label").fill("The owner");
	await page.getByRole("button", { name: "Open the ledger payments" }).click();
	await page.getByRole("heading", { name: "payments" }).waitFor();
	await page.getByText("No entries yet").waitFor();
	await page.getByLabel("Write as The owner").fill("Ship the refund fix today.");
	// It survives a reload, because it was not sent.
	await page.reload();
	expect(await page.getByLabel("Write as The owner").inputValue()).toBe("Ship the refund fix today.");
	await h.connected();
	await page.getByRole("button", { name: "Write to everyone" }).click();
	await inStream("Ship the refund fix today.").waitFor();
	expect(await page.getByLabel("Write as The owner").inputValue()).toBe("");
});

test("what others write comes by itself, and the operator does not see what is addressed to others", async () => {
	const { page } = h;
	const calendar = { kind: "CALENDAR", entry_index: 0, title: [31, 46], time: "2026-11-18T15:00:00Z" };
	[plan = "", secret = ""] = await write(
		"payments",
		"PLANNER",
		[{ text: PLAN }, { text: SECRET, to: ["REVIEWER"] }],
		[calendar],
	);
	await inStream(PLAN).waitFor();
	await page.getByRole("complementary", { name: "Pocket" }).getByRole("link", { name: "REVIEWER checks" }).waitFor();
	expect(await inStream(SECRET).count()).toBe(0);
	await h.screenshot("ledger-stream");
	// A field of the pocket is a place in its entry.
	await page.getByRole("link", { name: "REVIEWER checks" }).click();
	await expect.poll(() => page.locator("mark").allTextContents()).toEqual(["REVIEWER checks"]);
	await page.getByText("Nothing else that can be seen here").waitFor();
	await page.getByText("1 in the calendar").waitFor();
	expect(await page.locator("main").textContent()).not.toMatch(/GEORGE|PUBLIC|bundle|beat/i);
	await h.screenshot("ledger-entry");
	await page.getByRole("button", { name: "Why is this here?" }).click();
	await page.getByText("The chain ends at a person.").waitFor();
	// The keys do the same from the stream.
	await h.open("/ledgers/payments");
	await inStream(PLAN).waitFor();
	await page.keyboard.press("j");
	await page.keyboard.press("j");
	await page.keyboard.press("w");
	await page.getByText("The chain ends at a person.").waitFor();
});

test("seeing as a person shows and writes exactly that person's part, under a bar with a way back", async () => {
	const { page } = h;
	await h.open("/ledgers/payments");
	await h.connected();
	await page.getByRole("button", { name: "Seeing as: The owner" }).click();
	await page.getByRole("menuitem", { name: "REVIEWER" }).click();
	await page.getByText("You see and write as REVIEWER").waitFor();
	await inStream(SECRET).waitFor();
	await page.getByText("only Planner and REVIEWER").waitFor();
	await page.getByRole("button", { name: "Only some" }).click();
	await page.getByLabel("Planner", { exact: true }).check();
	await page.getByLabel("Write as REVIEWER").fill(HOSTILE);
	await page.getByRole("button", { name: "Write to Planner" }).click();
	await page.getByText("only REVIEWER and Planner").waitFor();
	expect(await page.locator("img").count()).toBe(0);
	expect(await page.title()).not.toBe("owned");
	await h.screenshot("ledger-as-reviewer");
	// The refusal of one's own proposal has code and path.
	await page.getByRole("button", { name: "Everyone", exact: true }).click();
	await page.getByLabel("Write as REVIEWER").fill("  ");
	await page.getByLabel("Write as REVIEWER").press("Control+Enter");
	const refusal = page.getByRole("alert").filter({ hasText: "nothing was written" });
	await refusal.getByText("TEXT_EMPTY").waitFor();
	await refusal.getByText("entries[0].text").waitFor();
	await page.reload();
	await page.getByText("You see and write as REVIEWER").waitFor();
	await page.getByRole("link", { name: "Back to The owner" }).click();
	await inStream(PLAN).waitFor();
	expect(await inStream(SECRET).count()).toBe(0);
	expect(new URL(page.url()).search).toBe("");
});

test("an audit shows everything, writes nothing, and is logged", async () => {
	const { page } = h;
	await h.open("/ledgers/payments");
	await h.connected();
	await page.getByRole("button", { name: "Seeing as: The owner" }).click();
	await page.getByRole("menuitem", { name: /^Audit/ }).click();
	await inStream(SECRET).waitFor();
	await inStream("gnp.exe").waitFor();
	expect(await page.getByRole("textbox").count()).toBe(0);
	const { lines } = await h.api<{ lines: { what: string }[] }>("/v1/worlds/payments/audit/lines");
	expect(lines.map(({ what }) => what)).toEqual(expect.arrayContaining(["acting-as", "audit-read"]));
	await page.getByRole("link", { name: "Back to The owner" }).click();
	await page.getByLabel("Write as The owner").waitFor();
});

test("a search finds what its reader may see, and each excerpt opens its entry", async () => {
	const { page } = h;
	await h.open("/ledgers/payments/search");
	await page.getByText("Search what was written").waitFor();
	await page.getByLabel("Words").fill("migration");
	await page.getByLabel("Words").press("Enter");
	await page.getByText("Nothing that can be seen here fits.").waitFor();
	await page.getByRole("button", { name: "Seeing as: The owner" }).click();
	await page.getByRole("menuitem", { name: "REVIEWER" }).click();
	const result = page.getByRole("list", { name: "Results" }).getByRole("link", { name: SECRET });
	await result.waitFor();
	await page.getByText("only Planner and REVIEWER").waitFor();
	expect(await page.locator("mark").first().textContent()).toBe("migration");
	await page.getByRole("heading", { name: "Search payments" }).click();
	await page.keyboard.press("j");
	await page.keyboard.press("j");
	await page.keyboard.press("k");
	await result.focus();
	await page.keyboard.press("Enter");
	await page.getByRole("heading", { name: "Entry of Planner" }).waitFor();
	await page.getByText("You see and write as REVIEWER").waitFor();
	// The same entry with the operator's eyes does not exist.
	await page.getByRole("link", { name: "Back to The owner" }).click();
	await page.getByRole("heading", { name: "Not found" }).waitFor();
});

test("people: a capsule of excerpts, what one knew, what two did not both know, and a token for an agent", async () => {
	const { page } = h;
	await h.open("/ledgers/payments/people");
	await h.connected();
	await page.getByRole("button", { name: "Add a person" }).click();
	await page.getByLabel("Id", { exact: true }).fill("TESTER");
	await page.getByLabel("Who that is, in one line").fill("Tries it all");
	await page.getByRole("button", { name: "Add TESTER" }).click();
	await page.getByText("Tries it all").waitFor();
	await page.getByRole("link", { name: "REVIEWER", exact: true }).click();
	await page.getByRole("link", { name: PLAN }).waitFor();
	await page.getByRole("link", { name: "What they knew" }).click();
	await page.getByText("Audit: what REVIEWER could see").waitFor();
	await page.getByText(SECRET).waitFor();
	await page.getByLabel(/^At this time/).fill("2020-01-01T00:00:00");
	await page.getByText("REVIEWER could see nothing then").waitFor();
	await page.getByRole("link", { name: "Compare two" }).click();
	await page.getByLabel("Compare REVIEWER with").selectOption({ label: "CODER" });
	await page.getByRole("region", { name: "Only REVIEWER" }).getByText(SECRET).waitFor();
	await page.getByRole("region", { name: "Only CODER" }).getByText("Nothing that REVIEWER could not see.").waitFor();
	await page.reload();
	await page.getByRole("region", { name: "Only REVIEWER" }).getByText(SECRET).waitFor();
	await h.screenshot("ledger-compare");
	await h.open("/ledgers/payments/people/CODER?tab=access");
	await h.connected();
	await page.getByRole("button", { name: "Make a token for CODER" }).click();
	await page.getByText("This token is shown this once.").waitFor();
	const line = await page.getByText(/^claude mcp add/).textContent();
	const secretOfToken = /Bearer (tkp\.[^"]+)/.exec(line ?? "")?.[1] ?? "";
	const seat = await fetch(`${h.serverUrl}/v1/worlds/payments/seat`, {
		headers: { authorization: `Bearer ${secretOfToken}` },
	});
	expect(await seat.json()).toMatchObject({ view: "CODER", write: true });
	await h.screenshot("ledger-access");
	await page.getByRole("button", { name: "Revoke…" }).click();
	await page.getByRole("button", { name: "Revoke token" }).click();
	await page.getByText("No token opens this ledger as CODER").waitFor();
});

test("the clock can be paused, and settings change", async () => {
	const { page } = h;
	await h.open("/ledgers/payments");
	await h.connected();
	await page.getByRole("button", { name: "Pause the clock" }).click();
	await page.getByText("by the operator").waitFor();
	await page.getByRole("button", { name: "Set the time…" }).click();
	await page.getByLabel("Time", { exact: true }).fill("2020-01-01T00:00:00");
	await page.getByRole("dialog").getByRole("button", { name: "Set the time" }).click();
	await page.getByText("409 TIME_REGRESSION").waitFor();
	await page.keyboard.press("Escape");
	await page.getByRole("button", { name: "Resume the clock" }).click();
	await page.getByRole("button", { name: "Pause the clock" }).waitFor();
	await page.getByRole("button", { name: "Settings…" }).click();
	await page.getByLabel("Your label").fill("Owner");
	await page.getByRole("button", { name: "Change the settings" }).click();
	await page.getByLabel("Write as Owner").waitFor();
});

test("an open ledger knows those whom its entries name, and a writer that fails takes no words along", async () => {
	const { page } = h;
	await h.api("/v1/worlds", { body: { world_id: "story", profile: "NARRATIVE", writer: "cmd: false" } });
	await h.open("/ledgers/story/people");
	await page.getByText("turnkeep world token story CODER --write --mcp claude").waitFor();
	await write("story", "REBECCA", [{ text: "Come in.", to: ["JOHN"] }, { text: "Who is there?" }]);
	await page.getByRole("link", { name: "REBECCA" }).waitFor();
	await h.open("/ledgers/story");
	await h.connected();
	await page.getByLabel("Write as Operator").fill("I knock.");
	await page.getByRole("button", { name: "Write to everyone" }).click();
	await inStream("I knock.").waitFor();
	await page.getByText("The attached writer added nothing, because it failed").waitFor();
	await h.screenshot("ledger-story");
});

test("a long ledger opens at its end, and earlier entries come as one scrolls", async () => {
	const { page } = h;
	await h.api("/v1/worlds", { body: { world_id: "long", profile: "WORKSPACE", persons: [{ person_id: "ANN" }] } });
	for (let at = 0; at < MANY; at += 64)
		await write(
			"long",
			"ANN",
			Array.from({ length: 64 }, (_, offset) => ({ text: `Line ${at + offset}` })),
		);
	await write("long", "ANN", [{ text: "x".repeat(200_000) }, { text: "The end" }]);
	await h.open("/ledgers/long");
	await inStream("The end").waitFor();
	await page.getByText("199 100 characters after this are not shown.".replace(" ", "\u202f")).waitFor();
	const list = page.getByRole("list", { name: "Entries" });
	await expect
		.poll(async () => {
			await list.evaluate((element) => element.parentElement?.scrollTo(0, 0));
			return list.getByText("Line 0", { exact: true }).count();
		})
		.toBe(1);
	expect(await list.locator("> li").first().getAttribute("aria-setsize")).toBe(String(MANY + 2));
});

const routes = () => [
	"/ledgers",
	"/ledgers/payments",
	"/ledgers/payments?as=REVIEWER",
	"/ledgers/payments?audit=1",
	"/ledgers/payments/search?q=rounding&as=PLANNER",
	`/ledgers/payments/entries/${plan}?quote=REVIEWER`,
	`/ledgers/payments/entries/${secret}?audit=1`,
	"/ledgers/payments/people",
	"/ledgers/payments/people/REVIEWER",
	"/ledgers/payments/people/REVIEWER?tab=knew",
	"/ledgers/payments/people/REVIEWER?tab=compare&vs=CODER",
	"/ledgers/payments/people/REVIEWER?tab=access",
	"/ledgers/nowhere",
];

test("every page fits a phone, axe finds nothing serious in either theme, and nothing is logged as an error", async () => {
	const { page } = h;
	h.consoleErrors.length = 0;
	for (const path of routes()) {
		await page.setViewportSize({ width: 390, height: 844 });
		await page.emulateMedia({ colorScheme: "light" });
		await h.open(path);
		await h.connected();
		await expect.poll(() => page.getByRole("status", { name: /^Loading/ }).count()).toBe(0);
		const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
		expect([path, tooWide]).toEqual([path, 0]);
		// Evaluated, because the policy of the page forbids scripts in the page.
		await page.evaluate(AXE);
		expect([path, await page.evaluate(seriousFaults)]).toEqual([path, []]);
		await page.emulateMedia({ colorScheme: "dark" });
		await page.setViewportSize({ width: 1280, height: 800 });
		expect([path, await page.evaluate(seriousFaults)]).toEqual([path, []]);
	}
	expect(h.consoleErrors.filter((error) => !/status of 404/.test(error))).toEqual([]);
});

async function seriousFaults(): Promise<string[]> {
	interface Fault {
		readonly id: string;
		readonly impact: string | null;
		readonly nodes: readonly { readonly html: string }[];
	}
	const { axe } = window as unknown as { axe: { run(): Promise<{ violations: Fault[] }> } };
	const { violations } = await axe.run();
	const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
	return serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}

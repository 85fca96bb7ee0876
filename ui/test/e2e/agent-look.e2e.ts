/** The screens of agents and changes: narrow windows and accessibility, with real data in both themes. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
	agentPath,
	edgeTo,
	firstTurn,
	type MadeRun,
	makeConflictRun,
	makeShopRun,
	scriptedConfig,
} from "./agent-runs.ts";
import { BINARY, type Harness, startHarness } from "./harness.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const scripts = mkdtempSync(join(tmpdir(), "turnkeep-scripts-"));
let harness: Harness;
let shop: MadeRun;
let conflict: MadeRun;

beforeAll(async () => {
	harness = await startHarness({ config: scriptedConfig(scripts, BINARY) });
	const dir = (name: string) => join(harness.workDir, name);
	[shop, conflict] = await Promise.all([
		makeShopRun(harness.api, dir("shop")),
		makeConflictRun(harness.api, dir("conflict")),
	]);
});
afterAll(async () => {
	await harness?.stop();
	rmSync(scripts, { recursive: true, force: true });
});

test("every part fits 390 pixels and has no serious accessibility violation in either theme", async () => {
	const paths = [
		...["timeline", "diffs", "prompt", "handoffs", "artifacts", "log", "settings"].map((tab) =>
			agentPath(shop, "printer", tab),
		),
		agentPath(conflict, "tess"),
		`/runs/${shop.id}/turns/${await firstTurn(harness.api, shop, "printer")}`,
		`/runs/${shop.id}/edges/${await edgeTo(harness.api, shop, "parser")}`,
		`/runs/${conflict.id}/changes`,
		`/runs/${shop.id}/agents/00000000-0000-4000-8000-000000000000/timeline`,
	];
	const { page } = harness;
	await page.setViewportSize({ width: 390, height: 844 });
	for (const path of paths) {
		await harness.open(path);
		await harness.connected();
		await expect.poll(() => page.getByRole("status", { name: /^Loading/ }).count()).toBe(0);
		const tooWide = () => document.documentElement.scrollWidth - innerWidth;
		expect([path, await page.evaluate(tooWide)]).toEqual([path, 0]);
		// Evaluated, because the page’s policy forbids scripts in the page.
		await page.evaluate(AXE);
		for (const colorScheme of ["light", "dark"] as const) {
			await page.emulateMedia({ colorScheme });
			expect([path, colorScheme, await violations(colorScheme)]).toEqual([path, colorScheme, []]);
		}
	}
});

/** Serious and critical findings of axe, each with the first place. */
function violations(colorScheme: "light" | "dark"): Promise<string[]> {
	// Only colours differ between the themes.
	const runOnly = colorScheme === "dark" ? { runOnly: ["color-contrast"] } : {};
	return harness.page.evaluate(async (only) => {
		const { axe } = window as unknown as { axe: { run: (root: Document, options: object) => Promise<AxeResults> } };
		const { violations: found } = await axe.run(document, { resultTypes: ["violations"], ...only });
		const isBad = ({ impact }: AxeFinding) => impact === "serious" || impact === "critical";
		return found.filter(isBad).map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
	}, runOnly);
}

interface AxeFinding {
	readonly id: string;
	readonly impact: string;
	readonly nodes: readonly { readonly html: string }[];
}

interface AxeResults {
	readonly violations: readonly AxeFinding[];
}

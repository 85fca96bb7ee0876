import { describe, expect, it } from "vitest";
import type { Schema } from "../../model/schema";
import { TOUR_STEPS } from "../../model/tour";
import type { TourDemo } from "../../model/tour-demo";
import { findRoute } from "../routes";
import { type DemoRun, isPageOf, pathOfStep } from "./step-path";

const DEMO: TourDemo = {
	run: "r",
	approvalNode: "a",
	stalledNode: "s",
	file: "src/prices.py",
	line: 3,
	world: "shop",
	persons: ["ANN", "BOB"],
	context: "12",
};

function runWith(diffs: readonly { readonly node: string | null; readonly files: string[]; readonly at: string }[]) {
	const artifacts = diffs.map(({ node, files, at }, number) => [
		number,
		{ id: number, kind: "diff", nodeId: node, createdAt: at, metadata: { filesChanged: files } },
	]);
	return { id: "r", artifacts: Object.fromEntries(artifacts) } as Schema<"RunView">;
}

const file = [DEMO.file];
const RUN = runWith([
	{ node: "early", files: file, at: "2026-11-18T14:00:00Z" },
	{ node: "late", files: file, at: "2026-11-18T14:05:00Z" },
	{ node: "other", files: ["README.md"], at: "2026-11-18T14:09:00Z" },
]);

describe("the page of a step", () => {
	it("is a page that exists", () => {
		const found = TOUR_STEPS.map((step) => pathOfStep(step, DEMO, RUN));
		expect(found).toEqual([
			"/",
			"/",
			"/runs/r/agents/late/diffs?file=src%2Fprices.py&line=3",
			"/runs/r/why",
			"/ledgers/shop?as=ANN",
			"/history/12",
			"/runs/r/changes",
		]);
		for (const path of found) expect(findRoute(new URL(path ?? "", location.origin).pathname)).not.toBeNull();
	});

	it("of the line is not known before the run is, and none without a diff of the file", () => {
		const pathOfLine = (run: DemoRun) => pathOfStep("line", DEMO, run);
		expect(pathOfLine(undefined)).toBeUndefined();
		expect(pathOfLine(null)).toBeNull();
		expect(pathOfLine(runWith([]))).toBeNull();
		expect(pathOfLine(runWith([{ node: null, files: file, at: "2026-11-18T14:00:00Z" }]))).toBeNull();
	});

	it("is open with any choice made in it", () => {
		expect(isPageOf("/ledgers/shop?as=ANN", "/ledgers/shop")).toBe(true);
		expect(isPageOf("/ledgers/shop?as=ANN", "/ledgers/shop/people")).toBe(false);
	});
});

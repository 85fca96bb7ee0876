import { afterEach, expect, test, vi } from "vitest";
import { answerRequests, renderInWindow } from "../../test/render";
import { Page } from "./Page";
import type { Crumb } from "./page-store";

afterEach(() => void vi.unstubAllGlobals());

const RUNS: Crumb = { label: "Runs", href: "/runs" };
const FIX: Crumb = { label: "Fix the test", href: "/runs/1" };

test.each([
	["Runs", [], "Runs · Turnkeep"],
	["Fix the test", [RUNS], "Fix the test · Turnkeep"],
	["Changes", [RUNS, FIX], "Changes · Fix the test · Turnkeep"],
	["Changes of Fix the test", [RUNS, FIX], "Changes of Fix the test · Turnkeep"],
	["Read\u202Eme", [RUNS], "Read⟨RLO⟩me · Turnkeep"],
])("the title of %s names its object", (title, crumbs, expected) => {
	answerRequests({ "GET /api/attention": { items: [] } });
	renderInWindow(
		<Page title={title} crumbs={crumbs}>
			content
		</Page>,
	);
	expect(document.title).toBe(expected);
});

test("a title begins with how much waits", async () => {
	const item = { ref: "run:1", runId: "1", since: "2026-11-18T14:00:00Z", summary: "x", actions: [] };
	answerRequests({
		"GET /api/attention": {
			items: [
				{ ...item, kind: "stall" },
				{ ...item, kind: "finished" },
			],
		},
	});
	renderInWindow(<Page title="Runs">content</Page>);
	await vi.waitFor(() => expect(document.title).toBe("(1) Runs · Turnkeep"));
});

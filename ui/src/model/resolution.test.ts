import { describe, expect, test } from "vitest";
import { earlierAnswer, resolutionWords } from "./resolution";

describe("a resolution", () => {
	test.each([
		["approved", "web", "✓ You approved it in the web UI"],
		["modified", "command-line", "✓ You changed it and approved on the command line"],
		["denied", "api", "✕ You denied it over the API"],
		["denied", "daemon", "✕ Turnkeep denied it"],
	] as const)("%s by %s", (status, by, words) => {
		expect(resolutionWords({ status, by })).toBe(words);
	});

	test("of an older version does not say where", () => {
		expect(resolutionWords({ status: "approved" })).toBe("✓ You approved it");
	});
});

describe("an answer that came second", () => {
	test("hears who was first, and what", () => {
		expect(earlierAnswer({ status: "denied", by: "web", reason: "Not\u202E now\nnor later" })).toBe(
			"Your answer came second. It was already denied in the web UI: Not⟨RLO⟩ now.",
		);
		expect(earlierAnswer({ status: "denied", by: "daemon", reason: "node deleted" })).toBe(
			"Your answer came second. It was already denied by Turnkeep itself: node deleted.",
		);
		expect(earlierAnswer({ status: "approved" })).toBe("Your answer came second. It was already approved.");
	});

	test("is no earlier answer if the error names none", () => {
		expect(earlierAnswer({})).toBeNull();
	});
});

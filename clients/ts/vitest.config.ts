import { defineConfig } from "vitest/config";

export default defineConfig({
	test: {
		include: ["test/**/*.test.{ts,tsx}"],
		// These end a test that hangs; a busy machine may take long for one that does not.
		testTimeout: 120_000,
		hookTimeout: 120_000,
		pool: "forks",
		maxWorkers: 2,
		// A failed request is an answer here; what a document says about it matters only when a test fails.
		silent: "passed-only",
	},
});

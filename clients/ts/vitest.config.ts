import { defineConfig } from "vitest/config";

export default defineConfig({
	test: {
		include: ["test/**/*.test.{ts,tsx}"],
		testTimeout: 20_000,
		hookTimeout: 20_000,
		pool: "forks",
		maxWorkers: 2,
		// A failed request is an answer here; what a document says about it matters only when a test fails.
		silent: "passed-only",
	},
});

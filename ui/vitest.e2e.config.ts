import { defineConfig } from "vitest/config";

export default defineConfig({
	test: {
		include: ["test/e2e/**/*.e2e.ts"],
		environment: "node",
		// Each script has a server and a browser of its own; two cores do not carry more at once.
		fileParallelism: false,
		testTimeout: 180_000,
		hookTimeout: 180_000,
	},
});

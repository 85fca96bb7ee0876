import { defineConfig } from "vitest/config";

export default defineConfig({
	test: {
		include: ["test/e2e/**/*.e2e.ts"],
		environment: "node",
		// Each script has a server and a browser of its own; two cores do not carry more at once.
		fileParallelism: false,
		testTimeout: 180_000,
		hookTimeout: 180_000,
		// A busy machine is slow. The default of a second would make tests fail by chance.
		expect: { poll: { timeout: 15_000 } },
	},
});

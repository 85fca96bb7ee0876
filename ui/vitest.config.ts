import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
	resolve: {
		alias: { "@turnkeep/client": fileURLToPath(new URL("../clients/ts/src", import.meta.url)) },
	},
	test: {
		include: ["src/**/*.test.{ts,tsx}", "test/*.test.{ts,tsx}"],
		environment: "happy-dom",
		setupFiles: ["test/setup.ts"],
		css: { modules: { classNameStrategy: "non-scoped" } },
		// These end a test that hangs; a busy machine may take long for one that does not.
		testTimeout: 30_000,
		maxWorkers: 2,
	},
});

import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compressedCopies } from "./build/compress.ts";
import { serverProxy } from "./build/server-proxy.ts";
import { sizeBudget } from "./build/size-budget.ts";

const SERVER = process.env.TURNKEEP_URL ?? "http://127.0.0.1:9010";

export default defineConfig({
	plugins: [react(), compressedCopies(), sizeBudget()],
	resolve: {
		alias: { "@turnkeep/client": fileURLToPath(new URL("../clients/ts/src", import.meta.url)) },
	},
	server: { host: "127.0.0.1", proxy: serverProxy(SERVER, process.env.TURNKEEP_TOKEN) },
	build: {
		target: "es2022",
		// A data URL would need `font-src data:`, which the server's policy does not have.
		assetsInlineLimit: 0,
		// The polyfill is an inline script, which the policy forbids.
		modulePreload: { polyfill: false },
	},
});

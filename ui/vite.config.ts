import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compressedCopies } from "./build/compress.ts";
import { serverProxy } from "./build/server-proxy.ts";

const SERVER = process.env.TURNKEEP_URL ?? "http://127.0.0.1:9010";
const proxy = serverProxy(SERVER, process.env.TURNKEEP_TOKEN);

/** The server's policy for pages: no inline script, nothing from elsewhere. */
const POLICY = [
	"default-src 'self'",
	"script-src 'self'",
	"style-src 'self' 'unsafe-inline'",
	"img-src 'self' data: blob:",
	"connect-src 'self'",
	"frame-ancestors 'none'",
].join("; ");

export default defineConfig({
	plugins: [react(), compressedCopies()],
	resolve: {
		alias: { "@turnkeep/client": fileURLToPath(new URL("../clients/ts/src", import.meta.url)) },
	},
	server: { host: "127.0.0.1", proxy },
	// The built UI is tried under the policy that the server sends with it.
	preview: { host: "127.0.0.1", proxy, headers: { "content-security-policy": POLICY } },
	build: {
		target: "es2022",
		// A data URL would need `font-src data:`, which the server's policy does not have.
		assetsInlineLimit: 0,
		// The polyfill is an inline script, which the policy forbids.
		modulePreload: { polyfill: false },
	},
});

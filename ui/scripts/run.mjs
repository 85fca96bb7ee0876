// Runs a script of this folder: `node scripts/run.mjs screens`. They are TypeScript, which Node 20 cannot read itself.

import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const name = process.argv[2] ?? "";
const root = fileURLToPath(new URL("..", import.meta.url));
const { module } = await runnerImport(fileURLToPath(new URL(`${name}.ts`, import.meta.url)), {
	root,
	configFile: false,
	logLevel: "error",
});
await module.main(process.argv.slice(3));

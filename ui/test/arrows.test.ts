/** Who may import whom: app -> features -> model, api, components; features never each other. */

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));

/** What a file imports, as paths from `src`; packages as they are called. */
function importsOf(file: string): string[] {
	const text = readFileSync(join("src", file), "utf8");
	const names = [...text.matchAll(/(?:from|import\(|^import)\s*"([^"]+)"/gm)].map((match) => match[1] ?? "");
	return names.map((name) => (name.startsWith(".") ? normalize(join(dirname(file), name)) : name));
}

/** `runs` of `features/runs/RunScreen.tsx`. */
const featureOf = (path: string) => /^features\/([^/]+)\//.exec(path)?.[1] ?? null;

/** Why an import is not allowed; null if it is. */
function faultOf(file: string, imported: string): string | null {
	const [ring] = file.split("/");
	const [target] = imported.split("/");
	const isPaths = imported === "app/paths";
	if (/\/index$/.test(imported)) return "no barrels";
	if (ring === "features" && target === "app" && !isPaths) return "features may import only app/paths";
	const feature = featureOf(imported);
	if (ring === "features" && feature !== null && feature !== featureOf(file)) return "no feature imports another";
	if ((ring === "components" || ring === "api" || ring === "model") && target === "features")
		return "features are above";
	if (ring === "components" && target === "app" && !isPaths) return "components may import only app/paths";
	if ((ring === "api" || ring === "model") && (target === "app" || target === "components"))
		return `${target} is above`;
	if (ring === "model" && (target === "api" || /^(react|wouter|zustand|@tanstack)/.test(imported)))
		return "the model is plain";
	return null;
}

test("the arrows hold", () => {
	const faults = files.flatMap((file) =>
		importsOf(file).flatMap((imported) => {
			const fault = faultOf(file, imported);
			return fault === null ? [] : [`${file} imports ${imported}: ${fault}`];
		}),
	);
	expect(faults).toEqual([]);
	expect(files.length).toBeGreaterThan(50);
});

test("no file has more than 600 lines, no component more than 200", () => {
	const long = files.filter((file) => {
		const lines = readFileSync(join("src", file), "utf8").split("\n").length;
		return lines > (file.endsWith(".tsx") && !file.includes(".test.") ? 200 : 600);
	});
	expect(long).toEqual([]);
});

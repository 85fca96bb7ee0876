import { expect, test } from "vitest";
import { firstLoads } from "../build/size-budget";

interface FakeChunk {
	readonly imports?: readonly string[];
	readonly dynamicImports?: readonly string[];
	readonly css?: readonly string[];
}

/** Content that compression cannot make smaller, so that more of it is always more. */
const content = (bytes: number) =>
	Array.from({ length: bytes }, (_, at) => Math.imul(at + 1, 2_654_435_761) >>> 0).join();

const chunk = (fileName: string, { imports = [], dynamicImports = [], css = [] }: FakeChunk, bytes = 10) => ({
	type: "chunk",
	fileName,
	name: fileName.replace(".js", ""),
	isEntry: fileName === "entry.js",
	imports,
	dynamicImports,
	viteMetadata: { importedCss: new Set(css) },
	code: content(bytes),
});
const asset = (fileName: string) => ({ type: "asset", fileName, source: content(10) });

function loadsOf(...outputs: { readonly fileName: string }[]) {
	const bundle = Object.fromEntries([asset("index.html"), ...outputs].map((output) => [output.fileName, output]));
	return firstLoads(bundle as never);
}

test("a screen is counted with the shell and what it imports, but without what it loads later", () => {
	const entry = chunk("entry.js", { dynamicImports: ["Plain.js", "Shared.js"], css: ["entry.css"] });
	const shared = chunk("Shared.js", { imports: ["lib.js"], dynamicImports: ["Graph.js"] });
	const parts = [asset("entry.css"), chunk("Plain.js", {}), chunk("lib.js", { imports: ["Shared.js"] })];
	const loads = loadsOf(entry, shared, ...parts, chunk("Graph.js", {}, 5_000));
	expect(loads.map(({ screen }) => screen)).toEqual(["Shared", "Plain"]);
	const [first, second] = loads.map(({ gzipBytes }) => gzipBytes);
	expect((first ?? 0) - (second ?? 0)).toBeLessThan(500);
});

test("a build without a page is an error", () => {
	expect(() => firstLoads({})).toThrow("no page");
});

import { describe, expect, it } from "vitest";
import { commandOf, futureRule, lastingScopes, ruleInWords } from "./approval-rule";

describe("the rule that a wider answer makes", () => {
	it("covers a command up to its first shell metacharacter", () => {
		expect(futureRule({ command: "npm test && git push" })).toEqual({ kind: "command", prefix: "npm test" });
		expect(futureRule({ command: " npm test " })).toEqual({ kind: "command", prefix: "npm test" });
		expect(futureRule({ cmd: ["npm", "test"] })).toEqual({ kind: "command", prefix: "npm test" });
	});

	it("covers one file, also if its name contains a star", () => {
		expect(futureRule({ file_path: "src/*.ts" })).toEqual({ kind: "path", path: "src/*.ts" });
	});

	it("is not made from anything else", () => {
		for (const args of [{ command: "; rm x" }, { query: "x" }, null, "text", { command: 3 }]) {
			expect(futureRule(args)).toEqual({ kind: "none" });
		}
	});

	it("is told with its tool, its reach and its limit", () => {
		const words = ruleInWords("Bash", { command: "npm test" }, "run");
		expect(words).toContain("Bash by any agent of this run");
		expect(words).toContain("“npm test”");
		expect(words).toContain("still asks");
	});

	it("is offered for the scopes that the server names", () => {
		expect(lastingScopes({ scopes: ["once"] })).toEqual([]);
		expect(lastingScopes({ scopes: ["once", "node"] })).toEqual(["node"]);
		expect(lastingScopes({})).toEqual(["node", "run"]);
	});

	it("takes no list of other things for a command", () => {
		expect(commandOf({ command: ["npm", 1] })).toBeNull();
	});
});

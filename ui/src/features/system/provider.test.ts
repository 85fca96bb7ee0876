import { expect, test } from "vitest";
import { featureWords, type Provider, programToml } from "./provider";

test("a program's part of the configuration is TOML, whatever its name is", () => {
	expect(programToml({ name: "mine", command: "/opt/mine/agent", protocol: "jsonl" })).toBe(
		'[providers.mine]\ncommand = "/opt/mine/agent"\nprotocol = "jsonl"\nargs = []',
	);
	expect(programToml({ name: 'a "b"', command: 'say "hi"', protocol: null })).toBe(
		'[providers."a \\"b\\""]\ncommand = "say \\"hi\\""\nargs = []',
	);
});

test("what a program can do is said in words", () => {
	const none = { resume: false, steer: false, approvals: false, editArgs: false } as Provider["features"];
	expect(featureWords(none)).toBe("only answers");
	expect(featureWords({ ...none, approvals: true, cost: true })).toBe("asks before it acts, reports cost");
});

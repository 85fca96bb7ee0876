import { expect, test } from "vitest";
import { commandOf, toolSubject, writtenFile } from "./tool-words";

test.each([
	[{ command: "ls -l", description: "List" }, "ls -l"],
	[{ command: ["git", "diff"] }, "git diff"],
	[{ command: "one\ntwo" }, "one …"],
	[{ file_path: "a.txt", content: "x" }, "a.txt"],
	[{ to: "parser", message: "Write it." }, "to parser: Write it."],
	[{ depth: 3 }, '{"depth":3}'],
	["plain", "plain"],
	[null, ""],
	[{ command: "a\u202Eb" }, "a⟨RLO⟩b"],
])("the subject of %j is %s", (args, subject) => {
	expect(toolSubject(args)).toBe(subject);
});

test("commands and written files are recognized by their arguments", () => {
	expect([commandOf({ cmd: "ls" }), commandOf({ command: 3 }), commandOf(null)]).toEqual(["ls", null, null]);
	expect(writtenFile({ file_path: "a", content: "b" })).toEqual({ path: "a", content: "b" });
	expect([writtenFile({ file_path: "a" }), writtenFile("a")]).toEqual([null, null]);
});

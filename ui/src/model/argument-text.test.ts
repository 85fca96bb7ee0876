import { expect, test } from "vitest";
import { argumentText } from "./argument-text";

test("a text of many lines has a line for each of them", () => {
	expect(argumentText({ content: "a\nb" })).toBe('{\n  "content": "a\\n\nb"\n}');
});

test("a backslash before an n is no newline", () => {
	expect(argumentText({ path: "C:\\new" })).toBe('{\n  "path": "C:\\\\new"\n}');
});

import { expect, test } from "vitest";
import { diffTexts } from "./text-diff";

const MARKS = { added: "+", removed: "-", context: " ", note: "\\" };

/** The diff as git would print its hunks, without the counts. */
function show(before: string, after: string): string[] {
	const file = diffTexts("it", before, after);
	return (file?.hunks ?? []).flatMap((hunk) => [
		`@ ${hunk.oldStart} ${hunk.newStart}`,
		...hunk.lines.map((line) => MARKS[line.kind] + line.text),
	]);
}

test("equal texts have no diff", () => {
	expect(diffTexts("it", "a\nb", "a\nb")).toBeNull();
});

test("a changed line stands between the lines around it", () => {
	expect(show("a\nb\nc", "a\nB\nc")).toEqual(["@ 1 1", " a", "-b", "+B", " c"]);
});

test("what is far from a change is left out, and each group of changes is a hunk", () => {
	const before = Array.from({ length: 20 }, (_, at) => `${at + 1}`);
	const after = before.map((line) => (line === "2" || line === "18" ? `${line}!` : line));
	expect(show(before.join("\n"), after.join("\n"))).toEqual([
		...["@ 1 1", " 1", "-2", "+2!", " 3", " 4", " 5"],
		...["@ 15 15", " 15", " 16", " 17", "-18", "+18!", " 19", " 20"],
	]);
});

test("lines that both have are kept, in their order", () => {
	expect(show("a\nb\nc\nd", "x\nb\nd\ny")).toEqual(["@ 1 1", "-a", "+x", " b", "-c", " d", "+y"]);
	expect(diffTexts("it", "a\nb\nc\nd", "x\nb\nd\ny")).toMatchObject({ added: 2, removed: 2 });
});

test("a part that is too large to compare counts as replaced", () => {
	const lines = (mark: string) => Array.from({ length: 600 }, (_, at) => `${mark}${at}`).join("\n");
	expect(diffTexts("it", lines("a"), lines("b"))).toMatchObject({ added: 600, removed: 600 });
});

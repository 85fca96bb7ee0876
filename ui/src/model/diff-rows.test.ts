import { expect, test } from "vitest";
import { parseDiff } from "./diff";
import { diffRows, rowOfPlace } from "./diff-rows";

const files = parseDiff(`diff --git a/x b/x
--- a/x
+++ b/x
@@ -1 +1 @@
-a
+b
diff --git a/p.png b/p.png
Binary files a/p.png and b/p.png differ
`);

test("a diff is rows, and a folded file only its header", () => {
	const kinds = (folded: readonly string[]) => diffRows(files, new Set(folded)).map((row) => row.kind);
	expect(kinds([])).toEqual(["file", "hunk", "line", "line", "file", "note"]);
	expect(kinds(["x"])).toEqual(["file", "file", "note"]);
});

test("a place is the row of its line, or of its file", () => {
	const rows = diffRows(files, new Set());
	expect(rowOfPlace(rows, { path: "x", line: 1 })).toBe(3);
	expect(rowOfPlace(rows, { path: "x", line: 7 })).toBe(0);
	expect(rowOfPlace(rows, { path: "p.png", line: null })).toBe(4);
	expect(rowOfPlace(diffRows(files, new Set(["x"])), { path: "x", line: 1 })).toBe(0);
	expect(rowOfPlace([], { path: "p.png", line: null })).toBeNull();
});

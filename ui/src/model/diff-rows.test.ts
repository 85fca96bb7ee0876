import { expect, test } from "vitest";
import { parseDiff } from "./diff";
import { diffRows, rowOfFile } from "./diff-rows";

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
	expect(rowOfFile(diffRows(files, new Set(["x"])), "p.png")).toBe(1);
	expect(rowOfFile([], "p.png")).toBeNull();
});

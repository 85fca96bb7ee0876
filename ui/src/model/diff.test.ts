import { expect, test } from "vitest";
import { parseDiff } from "./diff";

test("a changed file has its lines with their numbers", () => {
	const [file, ...others] = parseDiff(`diff --git a/src/a b.ts b/src/a b.ts
index 1234567..89abcde 100644
--- a/src/a b.ts
+++ b/src/a b.ts
@@ -3,4 +3,5 @@ function add() {
 one
-two
+two changed
+--- not a header
 three
 four
\\ No newline at end of file
`);
	expect(others).toEqual([]);
	expect(file).toMatchObject({ path: "src/a b.ts", change: "modified", added: 2, removed: 1 });
	expect(file?.hunks[0]?.heading).toBe("function add() {");
	expect(file?.hunks[0]?.lines).toEqual([
		{ kind: "context", text: "one", oldLine: 3, newLine: 3 },
		{ kind: "removed", text: "two", oldLine: 4, newLine: null },
		{ kind: "added", text: "two changed", oldLine: null, newLine: 4 },
		{ kind: "added", text: "--- not a header", oldLine: null, newLine: 5 },
		{ kind: "context", text: "three", oldLine: 5, newLine: 6 },
		{ kind: "context", text: "four", oldLine: 6, newLine: 7 },
		{ kind: "note", text: "No newline at end of file", oldLine: null, newLine: null },
	]);
});

test("a removed line that looks like a header stays a line", () => {
	const files = parseDiff(`diff --git a/q.sql b/q.sql
--- a/q.sql
+++ b/q.sql
@@ -1,2 +1 @@
--- a comment
 select 1;
diff --git a/z b/z
new file mode 100644
--- /dev/null
+++ b/z
@@ -0,0 +1 @@
+z
`);
	expect(files.map(({ path, change, added, removed }) => ({ path, change, added, removed }))).toEqual([
		{ path: "q.sql", change: "modified", added: 0, removed: 1 },
		{ path: "z", change: "added", added: 1, removed: 0 },
	]);
});

test("renames, modes, deletions and binary files are told apart", () => {
	const files = parseDiff(`diff --git a/old.ts b/new.ts
similarity index 90%
rename from old.ts
rename to new.ts
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git a/gone b/gone
deleted file mode 100644
index 1..0
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/p.png b/p.png
index 1..2 100644
Binary files a/p.png and b/p.png differ
`);
	expect(files.map(({ path, oldPath, change, isBinary }) => [path, oldPath, change, isBinary])).toEqual([
		["new.ts", "old.ts", "renamed", false],
		["run.sh", null, "mode", false],
		["gone", null, "deleted", false],
		["p.png", null, "modified", true],
	]);
});

test("git's quoted names are read", () => {
	const [file] = parseDiff(`diff --git "a/gr\\303\\274n\\t.ts" "b/gr\\303\\274n\\t.ts"
--- "a/gr\\303\\274n\\t.ts"
+++ "b/gr\\303\\274n\\t.ts"
@@ -1 +1 @@
-a
+b
`);
	expect(file?.path).toBe("grün\t.ts");
});

test("a plain unified diff of two files has two files", () => {
	const files = parseDiff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n");
	expect(files.map((file) => file.path)).toEqual(["x", "y"]);
});

test("an empty diff has no files", () => {
	expect(parseDiff("")).toEqual([]);
});

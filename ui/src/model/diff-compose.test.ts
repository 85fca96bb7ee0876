import { describe, expect, test } from "vitest";
import { type DiffFile, parseDiff } from "./diff";
import { composeDiffs } from "./diff-compose";

/** A diff of `a.txt` with one hunk, of which only the header's counts are made here. */
function patch(oldStart: number, newStart: number, lines: string[], header = ""): DiffFile[] {
	const olds = lines.filter((line) => !line.startsWith("+")).length;
	const news = lines.filter((line) => !line.startsWith("-")).length;
	return parseDiff(
		`diff --git a/a.txt b/a.txt\n${header}--- a/a.txt\n+++ b/a.txt\n@@ -${oldStart},${olds} +${newStart},${news} @@\n${lines.join("\n")}\n`,
	);
}

function shown(files: readonly DiffFile[]): string[] {
	const marks = { context: " ", added: "+", removed: "-", note: "\\" };
	return files.flatMap((file) =>
		file.hunks.flatMap((hunk) => [
			`@@ ${hunk.oldStart} ${hunk.newStart}`,
			...hunk.lines.map((line) => `${marks[line.kind]}${line.oldLine ?? ""},${line.newLine ?? ""} ${line.text}`),
		]),
	);
}

describe("diffs after each other", () => {
	test("a line that is written twice is one change, of the second turn", () => {
		const whole = composeDiffs([
			{ id: "one", files: patch(1, 1, [" a", "-b", "+c", " d"]) },
			{ id: "two", files: patch(1, 1, [" a", "-c", "+e", "+f", " d"]) },
		]);
		expect(shown(whole.files)).toEqual(["@@ 1 1", " 1,1 a", "-2, b", "+,2 e", "+,3 f", " 3,4 d"]);
		expect(whole.originOf("a.txt", 3)).toEqual({ id: "two", line: 3 });
		expect(whole.originOf("a.txt", 1)).toBeNull();
		expect([whole.files[0]?.added, whole.files[0]?.removed]).toEqual([2, 1]);
	});

	test("a change above moves the lines of an earlier turn, which keep their origin", () => {
		const whole = composeDiffs([
			{ id: "one", files: patch(20, 20, [" t", "+u", " v"]) },
			{ id: "two", files: patch(1, 1, [" a", "+x", "+y", " b"]) },
		]);
		expect(shown(whole.files)).toEqual([
			"@@ 1 1",
			" 1,1 a",
			"+,2 x",
			"+,3 y",
			" 2,4 b",
			"@@ 20 22",
			" 20,22 t",
			"+,23 u",
			" 21,24 v",
		]);
		expect(whole.originOf("a.txt", 23)).toEqual({ id: "one", line: 21 });
	});

	test("what is taken back leaves nothing", () => {
		const whole = composeDiffs([
			{ id: "one", files: patch(1, 1, [" a", "+b", " c"]) },
			{ id: "two", files: patch(1, 1, [" a", "-b", " c"]) },
		]);
		expect(whole.files).toEqual([]);
		expect(whole.separate).toEqual([]);
	});

	test("a file that is made and then changed counts as added", () => {
		const whole = composeDiffs([
			{ id: "one", files: patch(0, 1, ["+a", "+b"], "new file mode 100644\n") },
			{ id: "two", files: patch(1, 1, [" a", "-b", "+c"]) },
		]);
		expect(whole.files[0]?.change).toBe("added");
		expect(shown(whole.files)).toEqual(["@@ 0 1", "+,1 a", "+,2 c"]);
		expect(whole.originOf("a.txt", 1)).toEqual({ id: "one", line: 1 });
	});

	test("a file that is made and deleted is no change", () => {
		const whole = composeDiffs([
			{ id: "one", files: patch(0, 1, ["+a"], "new file mode 100644\n") },
			{ id: "two", files: patch(1, 0, ["-a"], "deleted file mode 100644\n") },
		]);
		expect(whole.files).toEqual([]);
	});

	test("steps that do not fit are shown one after the other", () => {
		const whole = composeDiffs([
			{ id: "one", files: patch(1, 1, [" a", "-b", "+c"]) },
			{ id: "two", files: patch(1, 1, [" a", "-somebody else's", "+d"]) },
		]);
		expect(whole.separate).toEqual(["a.txt"]);
		expect(whole.files[0]?.hunks).toHaveLength(2);
		expect(whole.originOf("a.txt", 2)).toBeNull();
	});

	test("random edits: the whole is the same as the difference of first and last", () => {
		let seed = 7;
		const random = (max: number) => {
			seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
			return seed % max;
		};
		for (let round = 0; round < 200; round += 1) {
			const base = Array.from({ length: 12 }, (_, at) => `base ${at}`);
			let now = [...base];
			const steps = [0, 1, 2].map((number) => {
				const at = random(now.length);
				const gone = random(Math.min(3, now.length - at) + 1);
				const made = Array.from({ length: random(3) + (gone === 0 ? 1 : 0) }, (_, n) => `${round} ${number} ${n}`);
				const lines = [...now.slice(at, at + gone).map((line) => `-${line}`), ...made.map((line) => `+${line}`)];
				const files = patch(gone === 0 ? at : at + 1, made.length === 0 ? at : at + 1, lines);
				now = [...now.slice(0, at), ...made, ...now.slice(at + gone)];
				return { id: String(number), files };
			});
			const whole = composeDiffs(steps);
			expect(whole.separate).toEqual([]);
			expect(applied(base, whole.files[0])).toEqual(now);
		}
	});
});

/** Applies a diff by its line numbers. */
function applied(base: readonly string[], file: DiffFile | undefined): string[] {
	const removed = new Set<number>();
	const added = new Map<number, string>();
	for (const line of file?.hunks.flatMap((hunk) => hunk.lines) ?? []) {
		if (line.kind === "removed" && line.oldLine !== null) removed.add(line.oldLine);
		if (line.kind === "added" && line.newLine !== null) added.set(line.newLine, line.text);
	}
	const kept = base.filter((_, at) => !removed.has(at + 1));
	const result: string[] = [];
	while (kept.length > 0 || added.has(result.length + 1)) {
		const text = added.get(result.length + 1) ?? kept.shift();
		if (text !== undefined) result.push(text);
	}
	return result;
}

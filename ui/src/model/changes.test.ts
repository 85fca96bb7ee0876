import { describe, expect, test } from "vitest";
import { commitMessage, readApplied, readReport, runChanges } from "./changes";
import type { Artifact, RunNode } from "./run";
import { newNode, RUN, uuid } from "./run-fixtures";

const worktree = { kind: "worktree", branch: "b" } as const;
const ada = newNode(uuid(1), "Ada", { workspace: worktree, createdAt: "2026-11-18T14:00:00.000Z" });
const bob = newNode(uuid(2), "Bob", { workspace: worktree, createdAt: "2026-11-18T14:00:01.000Z" });
const eve = newNode(uuid(3), "Eve", { workspace: { kind: "shared" }, createdAt: "2026-11-18T14:00:02.000Z" });

/** An artifact that was made so many seconds after the beginning. */
function made(second: number, fields: Partial<Artifact>): Artifact {
	return {
		id: uuid(1000 + second),
		runId: RUN,
		kind: "report",
		name: "x",
		path: "",
		bytes: 1,
		contentHash: "",
		createdAt: new Date(Date.UTC(2026, 10, 18, 15, 0, second)).toISOString(),
		...fields,
	};
}

function diff(second: number, node: RunNode, ...files: string[]): Artifact {
	const metadata = { filesChanged: files, added: 2, removed: 1, summary: "", baseTree: "a", headTree: "b" };
	return made(second, { kind: "diff", name: "diff.patch", nodeId: node.id, metadata });
}

function changesOf(nodes: readonly RunNode[], artifacts: readonly Artifact[]) {
	const byId = <T extends { id: string }>(all: readonly T[]) => Object.fromEntries(all.map((each) => [each.id, each]));
	return runChanges({ nodes: byId(nodes), artifacts: byId(artifacts) });
}

describe("the changes of a run", () => {
	test("are each agent's, with the files of worktrees once", () => {
		const changes = changesOf(
			[ada, bob, eve],
			[diff(1, ada, "a", "b"), diff(2, ada, "b"), diff(3, bob, "c"), diff(4, eve, "e"), diff(5, bob)],
		);
		expect(
			changes.contributions.map(({ node, place, files, added, diffs }) => [
				node.label,
				place,
				files,
				added,
				diffs.length,
			]),
		).toEqual([
			["Ada", "worktree", ["a", "b"], 4, 2],
			["Bob", "worktree", ["c"], 2, 1],
			["Eve", "shared", ["e"], 2, 1],
		]);
		expect(changes.waiting).toEqual(["a", "b", "c"]);
		expect(changes.overlaps).toEqual([]);
	});

	test("of different places in one file are named", () => {
		const changes = changesOf(
			[ada, bob, eve],
			[diff(1, ada, "a"), diff(2, bob, "a"), diff(3, bob, "e"), diff(4, eve, "e")],
		);
		expect(changes.overlaps.map(({ path, nodes }) => [path, nodes.map(({ label }) => label)])).toEqual([
			["a", ["Ada", "Bob"]],
			["e", ["Bob", "Eve"]],
		]);
	});

	test("that were applied wait no more, and those of the directory itself stay listed", () => {
		const apply = made(5, { name: "apply.json" });
		const changes = changesOf([ada, eve], [diff(1, ada, "a"), diff(2, eve, "e"), apply, diff(6, ada, "b")]);
		expect(changes.waiting).toEqual(["b"]);
		expect(changes.contributions.map(({ files }) => files)).toEqual([["b"], ["e"]]);
		expect(changes.applies).toEqual([apply]);
	});

	test("since the newest verification are counted", () => {
		const report = made(3, { name: "verification.json" });
		const earlier = made(2, { name: "verification.json" });
		expect(changesOf([ada], [diff(1, ada, "a"), earlier, report]).changedSince).toBe(0);
		const later = changesOf([ada], [report, earlier, diff(4, ada, "a"), diff(5, ada)]);
		expect([later.report, later.changedSince]).toEqual([report, 1]);
	});
});

test("a report of a verification is read, and what is none is not", () => {
	const text = '{"ok":false,"scope":"node","tree":"t","commands":[{"command":"make","exitCode":2,"output":"no"},7]}';
	expect(readReport(text)).toEqual({
		ok: false,
		scope: "node",
		tree: "t",
		commands: [{ command: "make", exitCode: 2, output: "no" }],
		reason: null,
	});
	expect(readReport('{"ok":false,"reason":"conflicts"}')).toMatchObject({
		scope: "run",
		tree: null,
		reason: "conflicts",
	});
	expect([readReport("no"), readReport("null"), readReport('{"tree":"t"}')]).toEqual([null, null, null]);
	expect(readApplied('{"applied":["a",1],"tree":"t","verified":true}')).toEqual({
		applied: ["a"],
		tree: "t",
		verified: true,
	});
	expect(readApplied("[]")).toBeNull();
});

test("a commit message has the goal, the parts and the run", () => {
	const run = { id: RUN, title: "Short", goal: `${"x".repeat(80)}\nmore` };
	const message = commitMessage(run, [{ label: "Ada", summary: "Wrote it.\nAnd more." }], ["a"]);
	expect(message).toBe(`${"x".repeat(71)}…\n\n- Ada: Wrote it.\n\n1 file by run ${RUN.slice(0, 8)}.\n`);
});

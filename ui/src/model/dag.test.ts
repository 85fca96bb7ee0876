import { describe, expect, test } from "vitest";
import { compareIds, type DagBranch, type DagTurn, dagWidth, lastCommonTurn, layoutDag, pageOf } from "./dag";

const turn = (id: number, parent: number, depth: number): DagTurn => ({
	id: String(id),
	parent: parent === 0 ? null : String(parent),
	depth,
	context: "1",
	createdAt: "2026-11-18T17:00:00Z",
	type: "Note@1",
	bytes: 1,
});
const branch = (context: string, head: number, turns: readonly DagTurn[]): DagBranch => ({
	context,
	labels: {},
	head: String(head),
	turns,
});
/** `o` is the turn, `|` a lane that passes, `/` a lane that joins. */
const draw = (branches: readonly DagBranch[]) =>
	layoutDag(branches).map(({ turn: { id }, lane, through, joins, hasChild }) => {
		const signs = Array.from({ length: dagWidth(layoutDag(branches)) }, (_, at) => {
			if (at === lane) return hasChild ? "o" : "O";
			return through.includes(at) ? "|" : joins.includes(at) ? "/" : " ";
		});
		return `${id} ${signs.join("")}`.trimEnd();
	});

describe("layoutDag", () => {
	test("a line is one lane", () => {
		expect(draw([branch("1", 2, [turn(2, 1, 1), turn(1, 0, 0)])])).toEqual(["2 O", "1 o"]);
	});

	test("a fork has a lane of its own, which joins at the turn that it starts from", () => {
		const main = branch("1", 5, [turn(5, 4, 3), turn(4, 2, 2), turn(2, 1, 1), turn(1, 0, 0)]);
		expect(draw([main, branch("2", 3, [turn(3, 2, 2)])])).toEqual(["5 O", "4 o", "3 |O", "2 o/", "1 o"]);
	});

	test("the main history keeps the left lane although a fork of its head is newer", () => {
		const main = branch("1", 2, [turn(2, 1, 1), turn(1, 0, 0)]);
		expect(draw([main, branch("2", 4, [turn(4, 3, 3), turn(3, 2, 2)])])).toEqual(["4  O", "3  o", "2 O/", "1 o"]);
	});

	test("a lane that has ended is used again", () => {
		const main = branch("1", 9, [turn(9, 5, 3), turn(5, 2, 2), turn(2, 1, 1), turn(1, 0, 0)]);
		const forks = [branch("2", 8, [turn(8, 5, 3)]), branch("3", 4, [turn(4, 2, 2)])];
		expect(draw([main, ...forks])).toEqual(["9 O", "8 |O", "5 o/", "4 |O", "2 o/", "1 o"]);
	});

	test("a turn that two branches have is one row", () => {
		const main = branch("1", 2, [turn(2, 1, 1), turn(1, 0, 0)]);
		expect(draw([main, branch("2", 3, [turn(3, 2, 2), turn(2, 1, 1)])])).toEqual(["3  O", "2 O/", "1 o"]);
	});

	test("heads are named at their turns, also that of a fork without turns of its own", () => {
		const main = branch("1", 2, [turn(2, 1, 1), turn(1, 0, 0)]);
		const rows = layoutDag([main, branch("2", 1, [])]);
		expect(rows.map(({ heads }) => heads.map(({ context }) => context))).toEqual([["1"], ["2"]]);
	});

	test("10 000 turns with 100 forks are laid out at once", () => {
		const turns = Array.from({ length: 10_000 }, (_, at) => turn(10_000 - at, 9_999 - at, 9_999 - at));
		const forks = Array.from({ length: 100 }, (_, at) =>
			branch(String(at + 2), 20_000 + at, [turn(20_000 + at, at * 90 + 1, at * 90 + 1)]),
		);
		const began = performance.now();
		const rows = layoutDag([branch("1", 10_000, turns), ...forks]);
		expect(rows.length).toBe(10_100);
		expect(performance.now() - began).toBeLessThan(1_000);
	});
});

test("ids compare as numbers of 64 bits", () => {
	expect(["10", "9", "18446744073709551615", "18446744073709551614"].toSorted(compareIds)).toEqual([
		"9",
		"10",
		"18446744073709551614",
		"18446744073709551615",
	]);
});

test("pages begin at fixed depths", () => {
	const turns = Array.from({ length: 25 }, (_, at) => turn(125 - at, 124 - at, 24 - at));
	const main = branch("1", 125, turns);
	const at = (depth: number) => pageOf(main, turn(101 + depth, 100 + depth, depth), 10);
	expect(at(24)).toEqual({ before: null, limit: 5, newest: "125" });
	expect(at(20)).toEqual({ before: null, limit: 5, newest: "125" });
	expect(at(19)).toEqual({ before: "121", limit: 10, newest: "120" });
	expect(at(0)).toEqual({ before: "111", limit: 10, newest: "110" });
});

test("the last common turn is the newest that both have", () => {
	const shared = [turn(2, 1, 1), turn(1, 0, 0)];
	expect(lastCommonTurn([turn(3, 2, 2), ...shared], [turn(4, 2, 2), ...shared])?.id).toBe("2");
	expect(lastCommonTurn(shared, [turn(9, 0, 0)])).toBeNull();
});

import { afterEach, expect, test, vi } from "vitest";
import { answerRequests } from "../../../test/render";
import { queryClient } from "../../api/query";
import type { DagTurn } from "../../model/dag";
import { extendTurns, lineageQuery, relatedQuery } from "./lineage";

afterEach(() => {
	vi.unstubAllGlobals();
	queryClient.clear();
});

const dagTurn = (id: number): DagTurn => ({
	id: String(id),
	parent: id === 1 ? null : String(id - 1),
	depth: id - 1,
	context: "1",
	createdAt: "2026-11-18T17:00:00Z",
	type: "Note@1",
	bytes: 1,
});

test("what is new is put before what is known, and nothing if they do not meet", () => {
	const known = [dagTurn(2), dagTurn(1)];
	expect(extendTurns(known, [dagTurn(4), dagTurn(3), dagTurn(2)])?.map(({ id }) => id)).toEqual(["4", "3", "2", "1"]);
	expect(extendTurns(known, [dagTurn(2), dagTurn(1)])).toBe(known);
	expect(extendTurns(known, [dagTurn(9)])).toBeNull();
});

const turn = (id: string, parent: string, context: string) => ({
	turn_id: id,
	parent_turn_id: parent,
	depth: 0,
	context_id: context,
	created_at: "2026-11-18T17:00:00Z",
	declared_type: { type_id: "Note", type_version: 1 },
	uncompressed_len: 1,
});
const context = (id: string, head: string) => ({
	context_id: id,
	head_turn_id: head,
	head_depth: 0,
	created_at: "2026-11-18T17:00:00Z",
	labels: {},
});
const turns = (...list: unknown[]) => ({ meta: {}, turns: list, next_before_turn_id: null });

test("forks are found by following each history down to a known turn; strangers are left out", async () => {
	const [t1, t2] = [turn("1", "0", "1"), turn("2", "1", "1")];
	const t3 = turn("3", "1", "2");
	const t4 = turn("4", "3", "3");
	const { requests } = answerRequests({
		"GET /v1/contexts/1": context("1", "2"),
		"GET /v1/contexts/1/turns": turns(t1, t2),
		"GET /v1/contexts/2/turns": turns(t1, t3),
		"GET /v1/contexts/3/turns": turns(t1, t3, t4),
		"GET /v1/contexts/4/turns": turns(turn("9", "0", "4")),
		"GET /v1/contexts": {
			contexts: [context("5", "1"), context("4", "9"), context("3", "4"), context("2", "3"), context("1", "2")],
			next_cursor: null,
		},
	});
	await queryClient.fetchQuery(lineageQuery("1"));
	const related = await queryClient.fetchQuery(relatedQuery("1", true));
	expect(related.branches.map((each) => [each.context, each.turns.map(({ id }) => id)])).toEqual([
		["2", ["3"]],
		["3", ["4"]],
		["5", []],
	]);
	const before = requests.length;
	await queryClient.fetchQuery({ ...relatedQuery("1", true), staleTime: 0 });
	// Only the list: no head has moved.
	expect(requests.length).toBe(before + 1);
});

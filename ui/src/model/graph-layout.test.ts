import { describe, expect, test } from "vitest";
import { CARD_HEIGHT, CARD_WIDTH, layoutAll, layoutGraph, neighbour, nextInCircle, type Places } from "./graph-layout";

const node = (id: string) => ({ id });
const edge = (from: string, to: string) => ({ from, to });
const NONE: Places = new Map();
const TEAM = ["lead", "a", "b", "c"].map(node);
const TEAM_EDGES = ["a", "b", "c"].map((to) => edge("lead", to));

function overlaps(places: Places): string[] {
	const all = [...places];
	return all.flatMap(([id, one], at) =>
		all
			.slice(at + 1)
			.filter(([, other]) => Math.abs(one.x - other.x) < CARD_WIDTH && Math.abs(one.y - other.y) < CARD_HEIGHT)
			.map(([other]) => `${id} ${other}`),
	);
}

describe("the first layout", () => {
	test("puts who hands work over to the left", () => {
		const places = layoutGraph(TEAM, TEAM_EDGES, NONE);
		const lead = places.get("lead");
		for (const id of ["a", "b", "c"]) expect(places.get(id)?.x).toBeGreaterThan((lead?.x ?? 0) + CARD_WIDTH);
		expect(overlaps(places)).toEqual([]);
	});

	test("is the same for the same graph, whatever the order of its edges", () => {
		expect(layoutAll(TEAM, TEAM_EDGES.toReversed())).toEqual(layoutAll(TEAM, TEAM_EDGES));
	});

	test("ignores edges to agents that are gone, circles and reports back", () => {
		const edges = [
			...TEAM_EDGES,
			edge("a", "gone"),
			edge("a", "b"),
			edge("b", "a"),
			{ ...edge("c", "lead"), isReport: true },
		];
		const places = layoutGraph(TEAM, edges, NONE);
		expect([...places.keys()]).toEqual(["lead", "a", "b", "c"]);
		expect(places.get("lead")?.x).toBe(0);
	});

	test("folds a hundred agents under one into a block, without overlaps", () => {
		const nodes = Array.from({ length: 101 }, (_, at) => node(`n${at}`));
		const edges = nodes.slice(1).map(({ id }) => edge("n0", id));
		const places = layoutGraph(nodes, edges, NONE);
		expect(overlaps(places)).toEqual([]);
		const height = Math.max(...[...places.values()].map(({ y }) => y)) + CARD_HEIGHT;
		const width = Math.max(...[...places.values()].map(({ x }) => x)) + CARD_WIDTH;
		expect(height / width).toBeLessThan(2);
	});

	test("puts agents without an edge below", () => {
		const places = layoutGraph([...TEAM, node("loose")], TEAM_EDGES, NONE);
		const others = ["lead", "a", "b", "c"].map((id) => places.get(id)?.y ?? 0);
		expect(places.get("loose")?.y).toBeGreaterThan(Math.max(...others));
	});
});

describe("later layouts", () => {
	const before = layoutGraph(TEAM, TEAM_EDGES, NONE);

	test("move no card that stands, whatever comes and goes", () => {
		const nodes = [...TEAM.filter(({ id }) => id !== "b"), node("new"), node("newer")];
		const edges = [...TEAM_EDGES, edge("a", "new"), edge("new", "newer"), edge("newer", "lead")];
		const after = layoutGraph(nodes, edges, before);
		for (const id of ["lead", "a", "c"]) expect(after.get(id)).toEqual(before.get(id));
		expect(after.has("b")).toBe(false);
		expect(overlaps(after)).toEqual([]);
	});

	test("put a new card to the right of who hands work to it, or of who made it", () => {
		const places = layoutGraph([...TEAM, { id: "child", parentId: "a" }], TEAM_EDGES, before);
		expect(places.get("child")?.x).toBeGreaterThan(before.get("a")?.x ?? 0);
	});

	test("keep the place that a person chose", () => {
		const position = { x: 900, y: -40 };
		const nodes = TEAM.map((each) => (each.id === "a" ? { ...each, position } : each));
		expect(layoutGraph(nodes, TEAM_EDGES, before).get("a")).toEqual(position);
	});

	test("find room for many at once", () => {
		const more = Array.from({ length: 40 }, (_, at) => node(`m${at}`));
		const edges = [...TEAM_EDGES, ...more.map(({ id }) => edge("lead", id))];
		expect(overlaps(layoutGraph([...TEAM, ...more], edges, before))).toEqual([]);
	});
});

test("a chosen place of one card pushes a computed one aside", () => {
	const computed = layoutAll(TEAM, TEAM_EDGES).get("a") ?? { x: 0, y: 0 };
	const nodes = TEAM.map((each) => (each.id === "b" ? { ...each, position: computed } : each));
	const places = layoutGraph(nodes, TEAM_EDGES, NONE);
	expect(places.get("b")).toEqual(computed);
	expect(overlaps(places)).toEqual([]);
});

describe("moving by keys", () => {
	const places: Places = new Map([
		["lead", { x: 0, y: 100 }],
		["a", { x: 400, y: 0 }],
		["b", { x: 400, y: 200 }],
	]);

	test("arrows go to the nearest card in their direction", () => {
		expect(neighbour(places, "a", "down")).toBe("b");
		expect(neighbour(places, "b", "up")).toBe("a");
		expect(neighbour(places, "a", "left")).toBe("lead");
		expect(neighbour(places, "lead", "left")).toBeNull();
		expect(neighbour(places, "unknown", "left")).toBeNull();
	});

	test("a circle begins anew after its last", () => {
		expect(nextInCircle(["a", "b"], "lead")).toBe("a");
		expect(nextInCircle(["a", "b"], "a")).toBe("b");
		expect(nextInCircle(["a", "b"], "b")).toBe("a");
		expect(nextInCircle([], "b")).toBeNull();
	});
});

/**
 * Where the cards of a run's graph stand.
 *
 * The first layout is computed for the whole graph, from left to right along the edges. After that nothing jumps: a card
 * that stands keeps its place whatever comes or goes, a new one takes the free place nearest to the agents that it is
 * connected with, and a place that a person chose (`position`) always wins. `layoutAll` begins anew, when asked to.
 */

import dagre from "@dagrejs/dagre";

export const CARD_WIDTH = 248;
export const CARD_HEIGHT = 136;
const GAP_ACROSS = 128;
const GAP_DOWN = 28;
const STEP_X = CARD_WIDTH + GAP_ACROSS;
const STEP_Y = CARD_HEIGHT + GAP_DOWN;
/** How many steps around the wanted place are tried before a card is put below everything. */
const RINGS_MAX = 12;
/** A rank of more cards than this, or than a square of all cards would have, is folded into several columns. */
const ROWS_MIN = 8;
/** Agents without an edge stand in rows of this many. */
const LOOSE_PER_ROW = 4;

export interface Point {
	readonly x: number;
	readonly y: number;
}

export interface LayoutNode {
	readonly id: string;
	/** Where a person put it. */
	readonly position?: Point | null | undefined;
	/** The agent that made it. */
	readonly parentId?: string | null | undefined;
}

export interface LayoutEdge {
	readonly from: string;
	readonly to: string;
	/** A report goes back to who leads, so it says nothing about who stands before whom. */
	readonly isReport?: boolean;
}

export type Places = ReadonlyMap<string, Point>;

/** Places for all nodes. Those of `before` stay; nodes come in the order of their creation. */
export function layoutGraph(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[], before: Places): Places {
	const chosen = new Map(nodes.flatMap(({ id, position }) => (position == null ? [] : [[id, position] as const])));
	const isFirst = nodes.every(({ id }) => !before.has(id));
	const begun = isFirst ? layoutAll(nodes, edges) : before;
	const places = new Map<string, Point>();
	for (const { id } of nodes) {
		const place = chosen.get(id) ?? begun.get(id);
		if (place !== undefined) places.set(id, place);
	}
	// A computed place may be one that a person gave to another card.
	const crowded = isFirst ? nodes.filter((node) => !chosen.has(node.id) && isTaken(places, node.id)) : [];
	for (const node of crowded) places.delete(node.id);
	for (const node of nodes) {
		if (!places.has(node.id)) places.set(node.id, freePlace(wantedPlace(node, edges, places), places));
	}
	return places;
}

/** The layout of the whole graph, whatever stood where. */
export function layoutAll(nodes: readonly LayoutNode[], edges: readonly LayoutEdge[]): Places {
	const known = new Set(nodes.map(({ id }) => id));
	const order = new Map(nodes.map(({ id }, at) => [id, at] as const));
	const rank = (id: string) => order.get(id) ?? 0;
	// In the order of creation, whatever order a table of edges has: the same graph looks the same.
	const drawn = edges
		.filter(({ from, to }) => known.has(from) && known.has(to))
		.toSorted((one, other) => rank(one.from) - rank(other.from) || rank(one.to) - rank(other.to));
	const connected = new Set(drawn.flatMap(({ from, to }) => [from, to]));
	const places = new Map<string, Point>();
	if (connected.size > 0) placeConnected(nodes, drawn, connected, places);
	const below = Math.max(-STEP_Y, ...[...places.values()].map(({ y }) => y)) + STEP_Y;
	const loose = nodes.filter(({ id }) => !connected.has(id));
	for (const [at, { id }] of loose.entries()) {
		places.set(id, { x: (at % LOOSE_PER_ROW) * STEP_X, y: below + Math.floor(at / LOOSE_PER_ROW) * STEP_Y });
	}
	return places;
}

function placeConnected(
	nodes: readonly LayoutNode[],
	edges: readonly LayoutEdge[],
	connected: ReadonlySet<string>,
	places: Map<string, Point>,
): void {
	const graph = new dagre.graphlib.Graph();
	graph.setGraph({ rankdir: "LR", nodesep: GAP_DOWN, ranksep: GAP_ACROSS });
	graph.setDefaultEdgeLabel(() => ({}));
	for (const { id } of nodes) if (connected.has(id)) graph.setNode(id, { width: CARD_WIDTH, height: CARD_HEIGHT });
	const ranked = edges.filter(({ isReport }) => isReport !== true);
	// Where there are only reports, they are all that is known.
	for (const { from, to } of ranked.length > 0 ? ranked : edges) graph.setEdge(from, to);
	dagre.layout(graph);
	const ranks = new Map<number, { readonly id: string; readonly y: number }[]>();
	for (const id of connected) {
		const { x, y } = graph.node(id);
		ranks.set(x, [...(ranks.get(x) ?? []), { id, y }]);
	}
	const rowsMax = Math.max(ROWS_MIN, Math.ceil(Math.sqrt(connected.size * (STEP_X / STEP_Y))));
	const inOrder = [...ranks].toSorted(([one], [other]) => one - other).map(([, cards]) => cards);
	if (inOrder.some((cards) => cards.length > rowsMax)) placeFolded(inOrder, rowsMax, places);
	else placeAsComputed(inOrder, places);
}

type Rank = readonly { readonly id: string; readonly y: number }[];

function placeAsComputed(ranks: readonly Rank[], places: Map<string, Point>): void {
	const top = Math.min(...ranks.flatMap((cards) => cards.map(({ y }) => y)));
	for (const [at, cards] of ranks.entries()) {
		for (const { id, y } of cards) places.set(id, { x: at * STEP_X, y: Math.round(y - top) });
	}
}

/** A hundred agents under one would be a column of a hundred cards: here each rank is a block about as high as wide. */
function placeFolded(ranks: readonly Rank[], rowsMax: number, places: Map<string, Point>): void {
	let column = 0;
	for (const cards of ranks) {
		const sorted = cards.toSorted((one, other) => one.y - other.y);
		const columns = Math.ceil(sorted.length / rowsMax);
		const rows = Math.ceil(sorted.length / columns);
		const top = Math.round(((rowsMax - rows) * STEP_Y) / 2);
		for (const [at, { id }] of sorted.entries()) {
			places.set(id, { x: (column + Math.floor(at / rows)) * STEP_X, y: top + (at % rows) * STEP_Y });
		}
		column += columns;
	}
}

/** Right of the agents that hand work to it, else left of those that it hands work to, else below everything. */
function wantedPlace(node: LayoutNode, edges: readonly LayoutEdge[], places: Places): Point {
	const placesOf = (ids: readonly (string | null | undefined)[]) =>
		ids.flatMap((id) => (id == null ? [] : (places.get(id) ?? [])));
	const sources = placesOf([node.parentId, ...edges.filter(({ to }) => to === node.id).map(({ from }) => from)]);
	if (sources.length > 0)
		return { x: Math.max(...sources.map(({ x }) => x)) + STEP_X, y: mean(sources.map(({ y }) => y)) };
	const targets = placesOf(edges.filter(({ from }) => from === node.id).map(({ to }) => to));
	if (targets.length > 0)
		return { x: Math.min(...targets.map(({ x }) => x)) - STEP_X, y: mean(targets.map(({ y }) => y)) };
	return below(places);
}

function mean(values: readonly number[]): number {
	return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function below(places: Places): Point {
	const all = [...places.values()];
	if (all.length === 0) return { x: 0, y: 0 };
	return { x: Math.min(...all.map(({ x }) => x)), y: Math.max(...all.map(({ y }) => y)) + STEP_Y };
}

/** The free place nearest to a wanted one: first along its column, then in the columns beside it. */
function freePlace(wanted: Point, places: Places): Point {
	for (let ring = 0; ring <= RINGS_MAX; ring += 1) {
		for (const { x, y } of ringOf(ring)) {
			const place = { x: Math.round(wanted.x + x * STEP_X), y: Math.round(wanted.y + y * STEP_Y) };
			if (isFree(place, places)) return place;
		}
	}
	return below(places);
}

/** Steps at a distance, the vertical ones first: cards of one rank stand below each other. */
function ringOf(ring: number): Point[] {
	if (ring === 0) return [{ x: 0, y: 0 }];
	const steps: Point[] = [];
	for (let across = 0; across <= ring; across += 1) {
		const down = ring - across;
		for (const y of down === 0 ? [0] : [down, -down]) steps.push({ x: across, y });
	}
	return steps;
}

function isFree(place: Point, places: Places, except?: string): boolean {
	for (const [id, other] of places) {
		const isApart = Math.abs(other.x - place.x) >= CARD_WIDTH + 8 || Math.abs(other.y - place.y) >= CARD_HEIGHT + 8;
		if (id !== except && !isApart) return false;
	}
	return true;
}

function isTaken(places: Places, id: string): boolean {
	const place = places.get(id);
	return place !== undefined && !isFree(place, places, id);
}

export type Direction = "left" | "right" | "up" | "down";

/** The card that an arrow key leads to: the nearest one in that direction, straight ahead before aside. */
export function neighbour(places: Places, from: string, direction: Direction): string | null {
	const start = places.get(from);
	if (start === undefined) return null;
	let best: { readonly id: string; readonly cost: number } | null = null;
	for (const [id, place] of places) {
		const [ahead, aside] = along(direction, place.x - start.x, place.y - start.y);
		if (id === from || ahead <= 0) continue;
		const cost = ahead + 2 * Math.abs(aside);
		if (best === null || cost < best.cost) best = { id, cost };
	}
	return best?.id ?? null;
}

function along(direction: Direction, x: number, y: number): readonly [ahead: number, aside: number] {
	switch (direction) {
		case "left":
			return [-x, y];
		case "right":
			return [x, y];
		case "up":
			return [-y, x];
		case "down":
			return [y, x];
	}
}

/** The node after this one in a circle; the first one if it is not among them. */
export function nextInCircle(ids: readonly string[], current: string | null): string | null {
	const at = current === null ? -1 : ids.indexOf(current);
	return ids[(at + 1) % Math.max(ids.length, 1)] ?? null;
}

/**
 * Turns that share a past, as rows with lanes, newest first. No React, no network.
 *
 * A turn has one parent, so a history is a tree seen from its heads. A lane is a line that runs down from a turn to its
 * parent. Lanes that wait for the same parent run side by side until they join at it:
 *
 *     5      main is 1-2-4-5, a fork of turn 2 is 3:   5  o      lane 0
 *     4                                               4  o
 *     3                                               3  | o    lane 1
 *     2                                               2  o/
 *     1                                               1  o
 */

export interface DagTurn {
	readonly id: string;
	/** null for a first turn. */
	readonly parent: string | null;
	readonly depth: number;
	/** The history that it was appended to. */
	readonly context: string;
	readonly createdAt: string;
	readonly type: string;
	readonly bytes: number;
}

/** A history: the turn at its head, and its turns that no history before it in the list has, newest first. */
export interface DagBranch {
	readonly context: string;
	readonly labels: Readonly<Record<string, string>>;
	readonly head: string | null;
	readonly turns: readonly DagTurn[];
}

export interface DagRow {
	readonly turn: DagTurn;
	/** Through which branch its payload is read. */
	readonly branch: DagBranch;
	readonly lane: number;
	/** Other lanes that pass by. */
	readonly through: readonly number[];
	/** Lanes from the right that end at this turn: forks of it. */
	readonly joins: readonly number[];
	/** Whether a line comes from above. */
	readonly hasChild: boolean;
	/** Whether a line goes on below. */
	readonly hasParent: boolean;
	/** The histories whose head it is. */
	readonly heads: readonly DagBranch[];
}

/** Compares two ids of 64 bits as numbers. */
export function compareIds(a: string, b: string): number {
	if (a.length !== b.length) return a.length - b.length;
	return a < b ? -1 : a > b ? 1 : 0;
}

/** Lays the branches out. The first one keeps the lane on the left. */
export function layoutDag(branches: readonly DagBranch[]): DagRow[] {
	const [main] = branches;
	if (main === undefined) return [];
	const headsOf = new Map<string, DagBranch[]>();
	for (const branch of branches) {
		if (branch.head === null) continue;
		headsOf.set(branch.head, [...(headsOf.get(branch.head) ?? []), branch]);
	}
	// Branches that were read at different moments may overlap; the first one that has a turn keeps it.
	const all = new Map<string, { readonly turn: DagTurn; readonly branch: DagBranch }>();
	for (const branch of branches) {
		for (const turn of branch.turns) if (!all.has(turn.id)) all.set(turn.id, { turn, branch });
	}
	// A child's id is greater than its parent's, so every child comes before its parent.
	const sorted = [...all.values()].sort((a, b) => compareIds(b.turn.id, a.turn.id));
	const lanes = new Lanes(main.head);
	return sorted.map(({ turn, branch }) => ({
		turn,
		branch,
		...lanes.place(turn),
		hasParent: turn.parent !== null,
		heads: headsOf.get(turn.id) ?? [],
	}));
}

/** The turn that each lane waits for. No turn is waited for in the reserved lane before the main head came. */
class Lanes {
	readonly #waits: (string | null)[];
	/** The first lane is kept free for the main history, also while turns of forks are newer than its head. */
	#reserved: string | null;

	constructor(mainHead: string | null) {
		this.#waits = [mainHead];
		this.#reserved = mainHead;
	}

	place(turn: DagTurn): Pick<DagRow, "lane" | "through" | "joins" | "hasChild"> {
		const drawn = this.#waiting(turn.id);
		const isReserved = this.#reserved === turn.id;
		// Of a head that a fork continues, the lane of the fork comes in from the right.
		const incoming = isReserved ? drawn.filter((lane) => lane !== 0) : drawn;
		const lane = isReserved ? 0 : (drawn[0] ?? this.#free());
		for (const each of drawn) this.#waits[each] = null;
		if (isReserved) this.#reserved = null;
		const through: number[] = [];
		for (const [at, waits] of this.#waits.entries()) {
			const isUndrawn = at === 0 && this.#reserved !== null;
			if (waits !== null && !isUndrawn && at !== lane) through.push(at);
		}
		this.#waits[lane] = turn.parent;
		while (this.#waits.length > 0 && this.#waits.at(-1) === null) this.#waits.pop();
		const joins = incoming.filter((each) => each !== lane);
		return { lane, through, joins, hasChild: incoming.includes(lane) };
	}

	#waiting(id: string): number[] {
		const found: number[] = [];
		for (const [at, waits] of this.#waits.entries()) if (waits === id) found.push(at);
		return found;
	}

	#free(): number {
		const gap = this.#waits.indexOf(null);
		return gap < 0 ? this.#waits.length : gap;
	}
}

/** How many lanes the widest row takes. */
export function dagWidth(rows: readonly DagRow[]): number {
	let width = 1;
	for (const { lane, through, joins } of rows) {
		for (const each of [lane, ...through, ...joins]) width = Math.max(width, each + 1);
	}
	return width;
}

/** Where a page of payloads begins, so that rows which are in view together are fetched together. */
export interface TurnPage {
	/** Its turns are the ancestors of this one; null means from the head on. */
	readonly before: string | null;
	readonly limit: number;
	/** The newest turn of the page, which names it: a page of whole turns never changes. */
	readonly newest: string;
}

/** The page with a turn of a branch. Pages begin at fixed depths, so a turn that is appended moves none of them. */
export function pageOf(branch: DagBranch, turn: DagTurn, size: number): TurnPage {
	const head = branch.turns[0] ?? turn;
	const first = Math.floor(turn.depth / size) * size;
	const above = branch.turns[head.depth - (first + size)];
	const newest = branch.turns[Math.max(0, head.depth - (first + size - 1))] ?? turn;
	const limit = newest.depth - first + 1;
	return { before: above?.id ?? null, limit, newest: newest.id };
}

/** The last turn that two lists of turns, newest first, have in common. */
export function lastCommonTurn(a: readonly DagTurn[], b: readonly DagTurn[]): DagTurn | null {
	const ids = new Set(a.map(({ id }) => id));
	return b.find(({ id }) => ids.has(id)) ?? null;
}

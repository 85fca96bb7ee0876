/**
 * The names of cached answers, and which of them a notice makes stale.
 *
 * A key begins with the kind of thing and its id, so one notice reaches everything that was fetched about a thing:
 * `["run", id, "why"]` is stale when the run is.
 */

import type { Notice } from "./notices";

export const keys = {
	attention: () => ["attention"] as const,
	approvals: () => ["attention", "approvals"] as const,
	rules: () => ["rules"] as const,
	runs: () => ["runs"] as const,
	/** Everything about a run: `keys.run(id, "why")`, `keys.run(id, "artifacts")`. */
	run: (id: string, ...rest: readonly (string | number)[]) => ["run", id, ...rest] as const,
	sessions: () => ["sessions"] as const,
	session: (id: string, ...rest: readonly (string | number)[]) => ["session", id, ...rest] as const,
	worlds: () => ["worlds"] as const,
	/** Everything about a ledger: `keys.world(name, "stream", as)`. */
	world: (name: string, ...rest: readonly (string | number)[]) => ["world", name, ...rest] as const,
	contexts: (...rest: readonly (string | number)[]) => ["contexts", ...rest] as const,
	context: (id: string, ...rest: readonly (string | number)[]) => ["context", id, ...rest] as const,
	/** Turns of the store never change, but for their filesystem. */
	turn: (id: string, ...rest: readonly (string | number)[]) => ["turn", id, ...rest] as const,
	blob: (hash: string) => ["blob", hash] as const,
	registry: (...rest: readonly (string | number)[]) => ["registry", ...rest] as const,
	why: (ref: string) => ["why", ref] as const,
	/** Things of the machine and the configuration, which no notice announces. */
	system: (...rest: readonly (string | number)[]) => ["system", ...rest] as const,
};

export type QueryKey = readonly (string | number)[];

/** What to fetch again after a notice; `[]` as a key means everything. */
export function staleKeys(notice: Notice): QueryKey[] {
	switch (notice.kind) {
		case "missed":
		case "damage":
			return [[]];
		case "attention.changed":
			return [keys.attention()];
		case "run.changed":
			return [keys.runs(), keys.run(idOf(notice.ref))];
		case "session.changed":
			return [keys.sessions(), keys.session(idOf(notice.ref))];
		case "world.changed":
			return [keys.worlds(), keys.world(idOf(notice.ref))];
		case "turn.appended":
			return [keys.contexts(), keys.context(notice.contextId)];
		case "context.created":
			return [keys.contexts()];
		case "fs.attached":
			return [keys.context(notice.contextId), keys.turn(notice.turnId)];
		case "registry.put":
			return [keys.registry()];
	}
}

/** The part behind the kind: `world:payments` is about `payments`. */
function idOf(ref: string): string {
	return ref.slice(ref.indexOf(":") + 1);
}

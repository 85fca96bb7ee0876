/**
 * Every URL of the UI, one builder per route. `routes.ts` has the patterns; a test proves that they fit.
 *
 * Features may import this file and nothing else of `app`.
 */

import { formatRef, type Ref } from "../model/refs";

export const AGENT_TABS = ["timeline", "diffs", "prompt", "handoffs", "artifacts", "log", "settings"] as const;
export type AgentTab = (typeof AGENT_TABS)[number];

export const SYSTEM_PAGES = [
	"health",
	"providers",
	"roles",
	"teams",
	"types",
	"tokens",
	"settings",
	"audit",
	"about",
] as const;
export type SystemPage = (typeof SYSTEM_PAGES)[number];

type Query = Readonly<Record<string, string | number | null | undefined>>;

/** Joins encoded parts; what is null or empty in the query is left out. */
function url(parts: readonly string[], query: Query = {}): string {
	const search = new URLSearchParams();
	for (const [name, value] of Object.entries(query)) {
		if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
	}
	const text = search.toString();
	return `/${parts.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

export const paths = {
	inbox: (
		filter: { readonly kind?: string | null; readonly run?: string | null; readonly item?: string | null } = {},
	) => url([], filter),

	runs: (query: Query = {}) => url(["runs"], query),
	newRun: (query: Query = {}) => url(["runs", "new"], query),
	run: (run: string, query: Query = {}) => url(["runs", run], query),
	agent: (run: string, node: string, tab: AgentTab = "timeline", query: Query = {}) =>
		url(["runs", run, "agents", node, tab], query),
	agentTurn: (run: string, turn: string, query: Query = {}) => url(["runs", run, "turns", turn], query),
	edge: (run: string, edge: string, query: Query = {}) => url(["runs", run, "edges", edge], query),
	changes: (run: string) => url(["runs", run, "changes"]),
	why: (run: string) => url(["runs", run, "why"]),
	replay: (run: string, seq?: number) => url(["runs", run, "replay"], { seq }),

	sessions: (query: Query = {}) => url(["sessions"], query),
	session: (session: string, query: Query = {}) => url(["sessions", session], query),
	capturedTurn: (session: string, seq: string | number) => url(["sessions", session, "turns", String(seq)]),

	ledgers: (query: Query = {}) => url(["ledgers"], query),
	ledger: (world: string, query: Query = {}) => url(["ledgers", world], query),
	ledgerSearch: (world: string, query: { readonly q?: string; readonly as?: string | null } = {}) =>
		url(["ledgers", world, "search"], query),
	entry: (world: string, entry: string, query: Query = {}) => url(["ledgers", world, "entries", entry], query),
	people: (world: string) => url(["ledgers", world, "people"]),
	person: (world: string, person: string, query: Query = {}) => url(["ledgers", world, "people", person], query),

	histories: (query: Query = {}) => url(["history"], query),
	history: (context: string, query: Query = {}) => url(["history", context], query),
	historyTurn: (context: string, turn: string, query: Query = {}) => url(["history", context, "turns", turn], query),
	compare: (a: string, b: string) => url(["history", "compare"], { a, b }),
	blob: (hash: string) => url(["blobs", hash]),

	system: (page: SystemPage = "health", query: Query = {}) => url(["system", page], query),
	go: (ref: Ref | string) => url(["go", typeof ref === "string" ? ref : formatRef(ref)]),
	signIn: (next?: string) => url(["signin"], { next }),
};

/** Where a ref is shown. Some need a look at the server first: their path is `/go/…`, which looks. */
export function pathOfRef(ref: Ref): string {
	switch (ref.kind) {
		case "context":
			return paths.history(ref.id);
		case "run":
			return paths.run(ref.id);
		case "session":
			return paths.session(ref.id);
		case "capturedTurn":
			return paths.capturedTurn(ref.session, ref.seq);
		case "world":
			return paths.ledger(ref.name);
		case "person":
			return paths.person(ref.world, ref.id);
		case "type":
			return paths.system("types", { id: ref.id, version: ref.version });
		case "approval":
			return paths.inbox({ item: formatRef(ref) });
		case "blob":
			return ref.hash.length === 64 ? paths.blob(ref.hash) : paths.go(ref);
		case "turn":
		case "agentTurn":
		case "node":
		case "edge":
		case "envelope":
		case "message":
		case "artifact":
		case "line":
		case "entry":
			return paths.go(ref);
	}
}

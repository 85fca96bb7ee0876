import { describe, expect, test } from "vitest";
import { parseRef } from "../model/refs";
import { matchPath } from "./match";
import { pathOfRef, paths, SYSTEM_PAGES } from "./paths";
import { findRoute, ROUTES } from "./routes";

const UUID = "6f0a2d0e-8a3b-4c5d-9e1f-001122334455";

function patternOf(url: string): string | null {
	return findRoute(new URL(url, "http://x").pathname)?.route.pattern ?? null;
}

describe("paths and routes", () => {
	const built: [string, string][] = [
		[paths.inbox({ kind: "approval", run: null }), "/"],
		[paths.runs(), "/runs"],
		[paths.newRun(), "/runs/new"],
		[paths.run("r"), "/runs/:run"],
		[paths.agent("r", "n"), "/runs/:run/agents/:node/:tab"],
		[paths.agentTurn("r", "t"), "/runs/:run/turns/:turn"],
		[paths.edge("r", "e"), "/runs/:run/edges/:edge"],
		[paths.changes("r"), "/runs/:run/changes"],
		[paths.why("r"), "/runs/:run/why"],
		[paths.replay("r", 4), "/runs/:run/replay"],
		[paths.sessions(), "/sessions"],
		[paths.session("a b"), "/sessions/:session"],
		[paths.capturedTurn("review", 3), "/sessions/:session/turns/:seq"],
		[paths.ledgers(), "/ledgers"],
		[paths.ledger("w"), "/ledgers/:world"],
		[paths.ledgerSearch("w", { q: "a & b", as: null }), "/ledgers/:world/search"],
		[paths.entry("w", "e_1"), "/ledgers/:world/entries/:entry"],
		[paths.people("w"), "/ledgers/:world/people"],
		[paths.person("w", "p"), "/ledgers/:world/people/:person"],
		[paths.histories(), "/history"],
		[paths.history("12"), "/history/:context"],
		[paths.historyTurn("12", "3"), "/history/:context/turns/:turn"],
		[paths.compare("1", "2"), "/history/compare"],
		[paths.blob("af"), "/blobs/:hash"],
		...SYSTEM_PAGES.map((page): [string, string] => [paths.system(page), `/system/${page}`]),
		[paths.go(`artifact://${UUID}#src/a b.ts:3`), "/go/:ref"],
		[paths.signIn("/runs?x=1"), "/signin"],
	];

	test.each(built)("%s opens %s", (url, pattern) => {
		expect(patternOf(url)).toBe(pattern);
	});

	test("every route has a builder", () => {
		const reached = new Set(built.map(([, pattern]) => pattern));
		// These two are shorter forms of others.
		const short = ["/system", "/runs/:run/agents/:node"];
		expect(ROUTES.map((route) => route.pattern).filter((pattern) => !reached.has(pattern))).toEqual(
			expect.arrayContaining(short),
		);
		expect(ROUTES.length - reached.size).toBe(short.length);
	});

	test("a query leaves out what is empty and encodes the rest", () => {
		expect(paths.ledgerSearch("w", { q: "a & b", as: null })).toBe("/ledgers/w/search?q=a+%26+b");
	});

	test("every kind of ref leads to a page", () => {
		const refs = [
			...["ctx:1", "turn:2", `turn:${UUID}`, "blob:af13", "session:s", "s:3", "world:w", "person:w/P", "type:t@1"],
			...["run", "node", "edge", "envelope", "message", "approval"].map((kind) => `${kind}:${UUID}`),
			...[`artifact://${UUID}`, `artifact://${UUID}#a/b:3`, "entry:e_13p0m06cwpf109bwv05yzd9f6c"],
		];
		for (const text of refs) {
			const ref = parseRef(text);
			expect(ref, text).not.toBeNull();
			if (ref !== null) expect(patternOf(pathOfRef(ref)), text).not.toBeNull();
		}
	});
});

describe("matching", () => {
	test("parameters are decoded, also with slashes", () => {
		expect(matchPath("/go/:ref", "/go/artifact%3A%2F%2Fx%23a%2Fb%3A3")).toEqual({ ref: "artifact://x#a/b:3" });
	});

	test("a slash at the end does not matter, anything else does", () => {
		expect(matchPath("/runs", "/runs/")).toEqual({});
		expect(matchPath("/runs/:run", "/runs//")).toBeNull();
		expect(matchPath("/runs/:run", "/runs/a/b")).toBeNull();
		expect(matchPath("/runs/:run", "/runs/%E0%A4%A")).toBeNull();
		expect(findRoute("/nowhere")).toBeNull();
	});
});

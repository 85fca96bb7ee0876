import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { answerRequests } from "../../test/render";
import { queryClient } from "../api/query";
import { parseRef } from "../model/refs";
import { resolveRef } from "./resolve-ref";

const id = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
const [RUN, FORK, LEAD, WORKER, EDGE, HANDOFF, MESSAGE, DIFF, TURN, PROMPT] = Array.from({ length: 10 }, (_, at) =>
	id(at),
);

const RUN_VIEW = {
	id: RUN,
	createdAt: "2026-11-18T10:00:00Z",
	updatedAt: "2026-11-18T11:00:00Z",
	nodes: { [`${LEAD}`]: { id: LEAD }, [`${WORKER}`]: { id: WORKER } },
	edges: { [`${EDGE}`]: { id: EDGE, from: LEAD, to: WORKER, bidirectional: true } },
	artifacts: {
		[`${DIFF}`]: { id: DIFF, nodeId: WORKER, metadata: { turnId: TURN } },
		[`${PROMPT}`]: { id: PROMPT, nodeId: WORKER },
	},
};
const FORK_VIEW = { ...RUN_VIEW, id: FORK, createdAt: "2026-11-18T12:00:00Z", updatedAt: "2026-11-18T12:30:00Z" };
const page = (events: readonly unknown[]) => ({ events, page: { hasMore: false } });

beforeEach(() => queryClient.clear());
afterEach(() => void vi.unstubAllGlobals());

function resolve(text: string, answers: Readonly<Record<string, unknown>>, runs: readonly unknown[] = [RUN_VIEW]) {
	const { requests } = answerRequests({ "GET /api/runs": { runs }, ...answers });
	const ref = parseRef(text);
	if (ref === null) throw new Error(`${text} is no ref`);
	return { path: resolveRef(ref, new AbortController().signal), requests };
}

/** Answers to the requests that look for a handoff from the worker to the lead. */
function handoffAnswers(text: string) {
	const sent = { type: "handoff.sent", envelope: { id: HANDOFF, fromNodeId: WORKER, toNodeId: LEAD } };
	return {
		[`GET /v1/refs/${encodeURIComponent(text)}/why`]: {
			ref: text,
			complete: true,
			chain: [{ ref: text, kind: "handoff", summary: "", at: "2026-11-18T10:30:00Z" }],
		},
		[`GET /api/runs/${RUN}/events`]: page([sent]),
	};
}

test("a handoff opens its connection, also against the direction of a two-way one", async () => {
	const text = `envelope:${HANDOFF}`;
	const { path, requests } = resolve(text, handoffAnswers(text), [FORK_VIEW, RUN_VIEW]);
	expect(await path).toBe(`/runs/${RUN}/edges/${EDGE}?handoff=${HANDOFF}`);
	// The fork began later, so it is not searched.
	expect(requests.some(({ url }) => url.includes(`/api/runs/${FORK}/`))).toBe(false);
});

test("a handoff over a connection that was deleted opens with its receiver", async () => {
	const text = `envelope:${HANDOFF}`;
	const { path } = resolve(text, handoffAnswers(text), [{ ...RUN_VIEW, edges: {} }]);
	expect(await path).toBe(`/runs/${RUN}/agents/${LEAD}/handoffs?handoff=${HANDOFF}`);
});

test("a message opens in the timeline of its agent, and nowhere if the agent was deleted", async () => {
	const text = `message:${MESSAGE}`;
	const sent = { type: "message.user", message: { id: MESSAGE, nodeId: WORKER } };
	const answers = { [`GET /api/runs/${RUN}/events`]: page([sent]) };
	expect(await resolve(text, answers).path).toBe(`/runs/${RUN}/agents/${WORKER}/timeline?message=${MESSAGE}`);
	queryClient.clear();
	expect(await resolve(text, answers, [{ ...RUN_VIEW, nodes: {} }]).path).toBeNull();
});

test("a line keeps its place in the diff of its turn", async () => {
	const text = `artifact://${DIFF}#src/a b.ts:7`;
	expect(await resolve(text, {}).path).toBe(
		`/runs/${RUN}/agents/${WORKER}/diffs?turn=${TURN}&file=src%2Fa+b.ts&line=7`,
	);
	queryClient.clear();
	const withoutAgent = resolve(text, {}, [{ ...RUN_VIEW, nodes: {} }]);
	expect(await withoutAgent.path).toBe(`/runs/${RUN}/turns/${TURN}?show=changes&file=src%2Fa+b.ts&line=7`);
});

test("another file opens beside the list of its agent's files", async () => {
	expect(await resolve(`artifact://${PROMPT}`, {}).path).toBe(
		`/runs/${RUN}/agents/${WORKER}/artifacts?artifact=${PROMPT}`,
	);
});

test("a turn without a diff is found by its prompt", async () => {
	const [other] = [id(99)];
	const text = `turn:${other}`;
	const chain = [
		{ ref: text, kind: "turn", summary: "" },
		{ ref: `artifact://${PROMPT}`, kind: "prompt", summary: "" },
	];
	const answers = { [`GET /v1/refs/${encodeURIComponent(text)}/why`]: { ref: text, complete: true, chain } };
	expect(await resolve(text, answers).path).toBe(`/runs/${RUN}/turns/${other}`);
});

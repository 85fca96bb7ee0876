/**
 * Where a ref is shown, for refs that do not say it themselves: an agent does not name its run, an entry not its ledger.
 *
 * A handoff is shown on the page of its connection, a message in the timeline of its agent. Null if nothing that this
 * server has is called so, or if what showed it was deleted; its chain may still explain it.
 */

import { ApiError } from "../api/errors";
import { answer, api } from "../api/http";
import { wholeRunsQuery, worldsQuery } from "../api/queries";
import { queryClient } from "../api/query";
import { whyQuery } from "../components/refs/why-query";
import { edgeBetween } from "../model/handoffs";
import { formatRef, parseRef, type Ref } from "../model/refs";
import type { Schema } from "../model/schema";
import { eventPages, findHandoff, findMessage, runsOfTime } from "./find-input";
import { pathOfRef, paths } from "./paths";

type RunView = Schema<"RunView">;

export async function resolveRef(ref: Ref, signal: AbortSignal): Promise<string | null> {
	switch (ref.kind) {
		case "context":
		case "run":
		case "session":
		case "capturedTurn":
		case "world":
		case "person":
		case "type":
		case "approval":
			return pathOfRef(ref);
		case "turn":
			return resolveTurn(ref.id, signal);
		case "blob":
			return resolveBlob(ref.hash, signal);
		case "entry":
			return resolveEntry(ref.id, signal);
		case "node":
			return inRuns((run) => (run.nodes[ref.id] === undefined ? null : paths.agent(run.id, ref.id)));
		case "edge":
			return inRuns((run) => (run.edges[ref.id] === undefined ? null : paths.edge(run.id, ref.id)));
		case "agentTurn":
			return resolveAgentTurn(ref);
		case "artifact":
			return inRuns((run) => pathOfArtifact(run, ref.id));
		case "line":
			return inRuns((run) => pathOfLine(run, ref));
		case "envelope":
			return resolveHandoff(ref, signal);
		case "message":
			return resolveMessage(ref, signal);
	}
}

async function resolveTurn(id: string, signal: AbortSignal): Promise<string | null> {
	const query = { view: "raw" } as const;
	const turn = await orNull(
		answer(api.GET("/v1/turns/{turn_id}", { params: { path: { turn_id: id }, query }, signal })),
	);
	return turn === null ? null : paths.historyTurn(turn.context_id, id);
}

async function resolveBlob(prefix: string, signal: AbortSignal): Promise<string | null> {
	if (prefix.length === 64) return paths.blob(prefix);
	const found = await answer(api.GET("/v1/blobs", { params: { query: { prefix } }, signal }));
	const [first, ...others] = found.hashes;
	return first === undefined || others.length > 0 ? null : paths.blob(first);
}

/** An entry's id does not say its ledger, so the ledgers are asked one after the other. */
async function resolveEntry(entry: string, signal: AbortSignal): Promise<string | null> {
	for (const { world_id: world } of await queryClient.fetchQuery(worldsQuery())) {
		const path = { world, entry };
		const found = await orNull(answer(api.GET("/v1/worlds/{world}/entries/{entry}", { params: { path }, signal })));
		if (found !== null) return paths.entry(world, entry);
	}
	return null;
}

/** A fork has the ids of its origin, so the oldest run that has the thing is the one. */
async function inRuns(pathIn: (run: RunView) => string | null): Promise<string | null> {
	const newestFirst = await queryClient.fetchQuery(wholeRunsQuery());
	for (const run of newestFirst.toReversed()) {
		const path = pathIn(run);
		if (path !== null) return path;
	}
	return null;
}

type RefOf<Kind extends Ref["kind"]> = Extract<Ref, { kind: Kind }>;

/** A turn without a diff is found by its prompt, which its chain names. */
async function resolveAgentTurn(ref: RefOf<"agentTurn">): Promise<string | null> {
	const found = await inRuns((run) => (hasTurn(run, ref.id) ? paths.agentTurn(run.id, ref.id) : null));
	if (found !== null) return found;
	const why = await orNull(queryClient.fetchQuery(whyQuery(formatRef(ref))));
	const files = why?.chain.map((link) => parseRef(link.ref)).filter((each) => each?.kind === "artifact") ?? [];
	return inRuns((run) => {
		const hasPrompt = files.some((file) => run.artifacts[file.id] !== undefined);
		return hasPrompt ? paths.agentTurn(run.id, ref.id) : null;
	});
}

function hasTurn(run: RunView, turn: string): boolean {
	const isOpen = Object.values(run.nodes).some((node) => node.turnId === turn);
	return isOpen || Object.values(run.artifacts).some((artifact) => artifact.metadata?.turnId === turn);
}

function pathOfArtifact(run: RunView, id: string): string | null {
	const artifact = run.artifacts[id];
	if (artifact === undefined) return null;
	const turn = artifact.metadata?.turnId ?? null;
	const node = artifact.nodeId ?? null;
	if (turn !== null) return pathOfDiff(run, node, turn, {});
	if (node === null || run.nodes[node] === undefined) return paths.changes(run.id);
	return paths.agent(run.id, node, "artifacts", { artifact: id });
}

/** The line in the diff that added it. */
function pathOfLine(run: RunView, { artifact: id, path, line }: RefOf<"line">): string | null {
	const artifact = run.artifacts[id];
	const turn = artifact?.metadata?.turnId ?? null;
	if (artifact === undefined || turn === null) return pathOfArtifact(run, id);
	return pathOfDiff(run, artifact.nodeId ?? null, turn, { file: path, line });
}

/** The tab of the agent, or the page of the turn if the agent was deleted. */
function pathOfDiff(
	run: RunView,
	node: string | null,
	turn: string,
	place: { readonly file?: string; readonly line?: number },
): string {
	if (node !== null && run.nodes[node] !== undefined) return paths.agent(run.id, node, "diffs", { turn, ...place });
	return paths.agentTurn(run.id, turn, { show: "changes", ...place });
}

/** The page of the connection that carried it, else the handoffs of an agent that had it. */
async function resolveHandoff(ref: RefOf<"envelope">, signal: AbortSignal): Promise<string | null> {
	const sent = await findHandoff(await runsOf(ref), ref.id, eventPages(signal));
	if (sent === null) return null;
	const { run, found: handoff } = sent;
	const edge = edgeBetween(run.edges, handoff.fromNodeId, handoff.toNodeId);
	if (edge !== null) return paths.edge(run.id, edge, { handoff: ref.id });
	const agent = [handoff.toNodeId, handoff.fromNodeId].find((id) => run.nodes[id] !== undefined);
	return agent === undefined ? null : paths.agent(run.id, agent, "handoffs", { handoff: ref.id });
}

async function resolveMessage(ref: RefOf<"message">, signal: AbortSignal): Promise<string | null> {
	const sent = await findMessage(await runsOf(ref), ref.id, eventPages(signal));
	if (sent === null) return null;
	const { run, found: message } = sent;
	if (run.nodes[message.nodeId] === undefined) return null;
	return paths.agent(run.id, message.nodeId, "timeline", { message: ref.id });
}

/** The runs that may have an input. */
async function runsOf(ref: RefOf<"envelope" | "message">): Promise<RunView[]> {
	const why = await orNull(queryClient.fetchQuery(whyQuery(formatRef(ref))));
	return runsOfTime(await queryClient.fetchQuery(wholeRunsQuery()), why?.chain[0]?.at ?? null);
}

async function orNull<T>(wanted: Promise<T>): Promise<T | null> {
	try {
		return await wanted;
	} catch (error) {
		if (error instanceof ApiError && (error.status === 404 || error.status === 403)) return null;
		throw error;
	}
}

/**
 * Where a ref is shown, for refs that do not say it themselves: an agent does not name its run, an entry not its ledger.
 *
 * Null if nothing that this server has is called so. A handoff or message has no page of its own; its chain explains it.
 */

import { ApiError } from "../api/errors";
import { answer, api } from "../api/http";
import { wholeRunsQuery, worldsQuery } from "../api/queries";
import { queryClient } from "../api/query";
import type { Ref } from "../model/refs";
import type { Schema } from "../model/schema";
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
			return inRuns((run) => (hasTurn(run, ref.id) ? paths.agentTurn(run.id, ref.id) : null));
		case "artifact":
			return inRuns((run) => pathOfArtifact(run, ref.id));
		case "line":
			return inRuns((run) => pathOfArtifact(run, ref.artifact));
		case "envelope":
		case "message":
			return null;
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

function hasTurn(run: RunView, turn: string): boolean {
	const isOpen = Object.values(run.nodes).some((node) => node.turnId === turn);
	return isOpen || Object.values(run.artifacts).some((artifact) => artifact.metadata?.turnId === turn);
}

function pathOfArtifact(run: RunView, id: string): string | null {
	const artifact = run.artifacts[id];
	if (artifact === undefined) return null;
	const turn = artifact.metadata?.turnId;
	if (turn != null) return paths.agentTurn(run.id, turn);
	return artifact.nodeId == null ? paths.changes(run.id) : paths.agent(run.id, artifact.nodeId, "artifacts");
}

async function orNull<T>(wanted: Promise<T>): Promise<T | null> {
	try {
		return await wanted;
	} catch (error) {
		if (error instanceof ApiError && (error.status === 404 || error.status === 403)) return null;
		throw error;
	}
}

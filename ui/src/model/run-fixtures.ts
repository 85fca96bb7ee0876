/** Events for tests, in the shapes that the server sends. */

import type { RunEvent, RunNode } from "./run";
import type { Schema } from "./schema";

/** A UUID that is easy to tell from others. */
export function uuid(number: number): string {
	return `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

export const RUN = uuid(999);
const AT = "2026-11-18T14:00:00.000Z";
const NO_USAGE = { promptTokens: 0, completionTokens: 0, totalTokens: 0, cachedTokens: 0, costUsd: 0 };

/** An event of the run with this number. The body is written by hand, as a server could send it. */
export function eventOf(seq: number, body: object): RunEvent {
	return { id: uuid(100_000 + seq), runId: RUN, ts: AT, seq, ...body } as RunEvent;
}

/** The first event of a run. */
export function createdRun(fields: Partial<Schema<"RunView">> = {}): RunEvent {
	const limits: Schema<"LimitsView"> = {
		maxConcurrentTurns: 4,
		maxNodes: 24,
		maxSpawnDepth: 3,
		stallAfter: 5,
		fanInMs: 300,
		silenceWarnMs: 180_000,
		silenceEndMs: 900_000,
		turnEndMs: 7_200_000,
		approvalMs: 0,
	};
	const patch: Schema<"RunView"> = {
		id: RUN,
		contractVersion: "1",
		status: "running",
		phase: "EXECUTE",
		mode: "INTERACTIVE",
		globalMode: "IMPLEMENTATION",
		createdAt: AT,
		updatedAt: AT,
		lastSeq: 1,
		title: "Fix the test",
		verify: [],
		setup: [],
		budget: {},
		limits,
		usage: NO_USAGE,
		nodes: {},
		edges: {},
		artifacts: {},
		...fields,
	};
	return eventOf(1, { type: "run.patch", patch });
}

/** A node as its first event has it. */
export function newNode(id: string, label: string, fields: Partial<RunNode> = {}): RunNode {
	return {
		id,
		runId: RUN,
		label,
		roleTemplate: "implementer",
		provider: "custom",
		status: "idle",
		summary: "",
		createdAt: AT,
		lastActivityAt: AT,
		capabilities: { spawnNodes: false, writeCode: true, writeDocs: true, runCommands: true, delegateOnly: false },
		permissions: { cliPermissionsMode: "gated", spawnRequiresApproval: true },
		session: { resetCommands: [] },
		inboxCount: 0,
		wakeOn: "any",
		depth: 0,
		usage: NO_USAGE,
		...fields,
	};
}

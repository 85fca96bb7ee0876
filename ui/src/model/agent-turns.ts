/**
 * The turns of an agent in short: what each consumed, under which mode, its prompt, its diff, and what it cost.
 *
 * Folded from the events that `TURN_EVENTS` names.
 */

import { type Artifact, isTurnOver, type RunEvent } from "./run";
import type { Schema } from "./schema";
import { unknownWord } from "./unknown-word";

export const TURN_EVENTS = ["turn.status", "artifact.created", "telemetry.usage"] as const;

export interface AgentTurn {
	readonly id: string;
	readonly nodeId: string | null;
	readonly status: Schema<"TurnStatus">;
	readonly startedAt: string;
	readonly endedAt: string | null;
	/** Why it was interrupted or failed. */
	readonly detail: string | null;
	readonly attempt: number;
	/** The messages and handoffs that it read. */
	readonly consumed: readonly string[];
	readonly requeued: readonly string[];
	readonly mode: Schema<"RunMode"> | null;
	readonly globalMode: Schema<"GlobalMode"> | null;
	readonly promptKind: Schema<"PromptKind"> | null;
	readonly tokens: number;
	readonly costUsd: number;
	/** What it changed; null until it ended. */
	readonly diff: Artifact | null;
	readonly promptFull: Artifact | null;
	readonly promptSent: Artifact | null;
	readonly promptBlocks: Artifact | null;
	/** Reports, logs and other files that it made. */
	readonly others: readonly Artifact[];
	readonly firstSeq: number;
	readonly lastSeq: number;
	/** Whether its beginning is known. */
	readonly isWhole: boolean;
}

/** A turn with nothing known but its id and an event of it. */
export function turnOfEvent(id: string, event: RunEvent): AgentTurn {
	const seq = event.seq ?? 0;
	return {
		id,
		nodeId: event.nodeId ?? null,
		status: "waiting_for_model",
		startedAt: event.ts,
		endedAt: null,
		detail: null,
		attempt: 1,
		consumed: [],
		requeued: [],
		mode: null,
		globalMode: null,
		promptKind: null,
		tokens: 0,
		costUsd: 0,
		diff: null,
		promptFull: null,
		promptSent: null,
		promptBlocks: null,
		others: [],
		firstSeq: seq,
		lastSeq: seq,
		isWhole: event.type === "turn.status" && event.status === "turn.started",
	};
}

/** What an event says about its turn. */
export function applyToTurn(turn: AgentTurn, event: RunEvent): AgentTurn {
	const lastSeq = event.seq ?? turn.lastSeq;
	switch (event.type) {
		case "turn.status":
			return {
				...turn,
				lastSeq,
				status: event.status,
				endedAt: isTurnOver(event.status) ? event.ts : null,
				detail: event.detail ?? turn.detail,
				attempt: event.attempt ?? turn.attempt,
				consumed: event.consumed ?? turn.consumed,
				requeued: event.requeued ?? turn.requeued,
				mode: event.mode ?? turn.mode,
				globalMode: event.globalMode ?? turn.globalMode,
				promptKind: event.promptKind ?? turn.promptKind,
			};
		case "telemetry.usage":
			return {
				...turn,
				lastSeq,
				tokens: turn.tokens + event.usage.totalTokens,
				costUsd: turn.costUsd + (event.costUsd ?? 0),
			};
		case "artifact.created":
			return { ...turn, lastSeq, ...placeArtifact(turn, event.artifact) };
		default:
			return turn;
	}
}

function placeArtifact(turn: AgentTurn, artifact: Artifact): Partial<AgentTurn> {
	if (artifact.kind === "diff" && artifact.metadata != null) return { diff: artifact };
	if (artifact.kind === "prompt") {
		if (artifact.name === "prompt.full.txt") return { promptFull: artifact };
		if (artifact.name === "prompt.sent.txt") return { promptSent: artifact };
		if (artifact.name === "prompt.blocks.json") return { promptBlocks: artifact };
	}
	return { others: [...turn.others, artifact] };
}

/** Turns in the order in which they began. */
export type AgentTurns = readonly AgentTurn[];

/** Folds events of one agent, or of a whole run. Other events than `TURN_EVENTS` change nothing. */
export function applyTurnEvents(turns: AgentTurns, events: readonly RunEvent[]): AgentTurns {
	const next = [...turns];
	const places = new Map(next.map((turn, at) => [turn.id, at]));
	for (const event of events) {
		if (event.turnId == null || !TURN_EVENTS.some((type) => type === event.type)) continue;
		const at = places.get(event.turnId) ?? next.length;
		places.set(event.turnId, at);
		next[at] = applyToTurn(next[at] ?? turnOfEvent(event.turnId, event), event);
	}
	return next;
}

/** How a turn stands, as a word with its tone. */
export function turnWords(status: Schema<"TurnStatus">): {
	readonly tone: "running" | "waiting" | "failed" | "done" | "neutral";
	readonly word: string;
} {
	switch (status) {
		case "turn.started":
			return { tone: "running", word: "starting" };
		case "waiting_for_model":
			return { tone: "running", word: "running" };
		case "tool.pending":
			return { tone: "running", word: "uses a tool" };
		case "awaiting_approval":
			return { tone: "waiting", word: "waits for your approval" };
		case "turn.completed":
			return { tone: "done", word: "completed" };
		case "turn.interrupted":
			return { tone: "neutral", word: "interrupted" };
		case "turn.failed":
			return { tone: "failed", word: "failed" };
		default:
			return { tone: "neutral", word: unknownWord(status) };
	}
}

/** Why a run does not go on, as words and as a tree: root causes first, and under each what waits because of it. */

import type { Schema } from "./schema";
import { firstLine } from "./text-safety";
import { unknownWord } from "./unknown-word";

export type WhyGraph = Schema<"WhyGraph">;
export type Wait = Schema<"WaitView">;

/** A wait, and the waits of other agents that end when it ends. */
export interface WaitTree {
	readonly wait: Wait;
	/** Its place in the answer; names it. */
	readonly at: number;
	readonly isRoot: boolean;
	readonly because: readonly WaitTree[];
}

/** The trees of a graph: one for each root cause, then what no root cause explains, such as circles. */
export function waitTrees({ waits, rootCauses }: WhyGraph): WaitTree[] {
	const seen = new Set<number>();
	const roots = new Set(rootCauses);
	const grow = (at: number): WaitTree | null => {
		const wait = waits[at];
		if (wait === undefined || seen.has(at)) return null;
		seen.add(at);
		const { nodeId } = wait;
		const waiting =
			nodeId == null ? [] : waits.flatMap((other, index) => (other.owner.nodeId === nodeId ? [index] : []));
		return { wait, at, isRoot: roots.has(at), because: waiting.flatMap((index) => grow(index) ?? []) };
	};
	const first = rootCauses.toSorted((one, other) => ageOf(waits[other]) - ageOf(waits[one]));
	return [...first, ...waits.keys()].flatMap((at) => grow(at) ?? []);
}

function ageOf(wait: Wait | undefined): number {
	return wait?.ageMs ?? 0;
}

/** Whether somebody is in fact waiting: an agent that has nothing to do keeps nobody. */
export function isIdleWait(wait: Wait): boolean {
	return wait.reason === "no-input";
}

/** Why it does not go on, without who and since when. */
export function waitWords(wait: Wait): string {
	switch (wait.reason) {
		case "run-stopped":
			return stoppedWords(wait);
		case "verification":
			return "the verification commands run";
		case "no-nodes":
			return "the run has no agent";
		case "no-input":
			return "has nothing to do";
		case "preparing":
			return "its workspace is being prepared";
		case "working":
			return "works";
		case "interrupting":
			return "is being interrupted";
		case "approval":
			return "waits for an approval";
		case "question":
			return "waits for an answer";
		case "stall":
			return "is stalled";
		case "failure":
			return wait.detail == null ? "has failed" : `has failed: ${firstLine(wait.detail)}`;
		case "violation":
			return `wrote ${wait.paths?.length === 1 ? "a file" : "files"} that it may not write`;
		case "reply":
			return "waits for a reply";
		case "interrupted":
			return "was interrupted, and its inputs wait for a message or a retry";
		case "fan-in":
			return "waits a moment for other replies";
		case "retry-at":
			return "waits until its provider answers again";
		case "program-parked":
			return "its program is parked after a limit was reached";
		case "program-full":
			return "all turns of its program are taken";
		case "run-full":
			return "all turns of this run are taken";
		case "server-full":
			return "all turns of this server are taken";
		case "blocked":
			return "is blocked";
		case "turn-open":
			return "has an open turn";
		default:
			return unknownWord(wait.reason);
	}
}

function stoppedWords({ runStatus = null, pausedReason }: Wait): string {
	switch (runStatus) {
		case "paused":
			return `the run is paused${pausedReason == null ? "" : `: ${pausedWords(pausedReason)}`}`;
		case "completed":
			return "the run is completed";
		case "failed":
			return "the run has failed";
		case "queued":
			return "the run is queued until a turn is free";
		case "running":
		case null:
			return "the run does not run";
		default:
			return `the run is ${unknownWord(runStatus)}`;
	}
}

function pausedWords(reason: Schema<"PausedReason">): string {
	switch (reason) {
		case "user":
			return "you paused it";
		case "stall":
			return "an agent is stalled";
		case "budget":
			return "the budget is used up";
		case "daemon-restart":
			return "the server was restarted";
		default:
			return unknownWord(reason);
	}
}

/** What a person can do about a wait, as the verb of a link; null where only time or others help. */
export type WaitRemedy = "inbox" | "resume" | "chat" | "add-agent" | null;

export function remedyOf(wait: Wait): WaitRemedy {
	if (wait.owner.kind !== "person") return null;
	switch (wait.reason) {
		case "approval":
		case "question":
		case "violation":
		case "stall":
		case "failure":
		case "blocked":
			return "inbox";
		case "run-stopped":
			return wait.runStatus === "paused" ? "resume" : "chat";
		case "no-nodes":
			return "add-agent";
		case "no-input":
		case "interrupted":
			return "chat";
		default:
			return null;
	}
}

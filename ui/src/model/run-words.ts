/**
 * The states of runs and agents as words: each with its tone, its reason, and since when.
 *
 * A wait without a reason is a bug, so every branch here gives one.
 */

import { type Approval, type Artifact, isTurnOver, type RunFields, type RunNode, type RunState } from "./run";
import type { Schema } from "./schema";
import { firstLine } from "./text-safety";
import { formatClock, parseTime } from "./time";
import { unknownWord } from "./unknown-word";

/** How a state looks; the same names as the tones of `StateWord`. */
export type Tone = "running" | "waiting" | "failed" | "done" | "neutral";

export interface StateWords {
	readonly tone: Tone;
	/** The state in the words of the API. */
	readonly word: string;
	/** Why. Untrusted text may be part of it. */
	readonly reason: string;
	/** Since when, as a time of the API; null where the state has no beginning worth a word. */
	readonly since: string | null;
}

const REASON_CHARS_MAX = 160;
const UNKNOWN_STATE = "this page does not know the state";

/** What a run's state needs to be told; a summary of a list has as much. */
export type RunStateFields = Pick<RunFields, "status" | "phase" | "pausedReason" | "updatedAt">;

/** "paused · stalled: same output · 4 min". */
export function runStateWords(run: RunStateFields, more: RunStateDetail = {}): StateWords {
	const since = run.updatedAt;
	switch (run.status) {
		case "queued":
			return { tone: "neutral", word: "queued", reason: "waits until a turn is free", since };
		case "running":
			return runningWords(run, more);
		case "paused":
			return {
				tone: "waiting",
				word: "paused",
				reason: pauseReason(run.pausedReason ?? null, more.stall ?? null),
				since,
			};
		case "completed":
			return { tone: "done", word: "completed", reason: "every agent is at rest", since };
		case "failed":
			return { tone: "failed", word: "failed", reason: "cannot go on without repair", since };
		default:
			return { tone: "neutral", word: unknownWord(run.status), reason: UNKNOWN_STATE, since };
	}
}

export interface RunStateDetail {
	readonly running?: number;
	readonly waiting?: number;
	readonly agents?: number;
	readonly stall?: Schema<"StallEvidence"> | null;
}

function runningWords(run: RunStateFields, { running, waiting, agents }: RunStateDetail): StateWords {
	const since = run.updatedAt;
	if (run.phase === "VERIFY") return { tone: "running", word: "running", reason: "verifies the work", since };
	if (waiting !== undefined && waiting > 0) {
		return {
			tone: "waiting",
			word: "running",
			reason: `${numbered(waiting, "decision waits", "decisions wait")} for you`,
			since,
		};
	}
	if (running !== undefined && running > 0) {
		return { tone: "running", word: "running", reason: `${numbered(running, "agent works", "agents work")}`, since };
	}
	if (agents === 0) return { tone: "neutral", word: "running", reason: "has no agent yet", since };
	return { tone: "neutral", word: "running", reason: "no agent works", since };
}

function numbered(count: number, one: string, many: string): string {
	return `${count} ${count === 1 ? one : many}`;
}

function pauseReason(reason: Schema<"PausedReason"> | null, stall: Schema<"StallEvidence"> | null): string {
	switch (reason) {
		case "user":
			return "you paused it";
		case "stall":
			return stall === null ? "stalled" : `stalled: ${stallWords(stall)}`;
		case "budget":
			return "its budget is used up";
		case "daemon-restart":
			return "the server was restarted";
		case null:
			return "no reason was recorded";
		default:
			return unknownWord(reason);
	}
}

/** "the same output 5 times". */
export function stallWords(stall: Schema<"StallEvidence">): string {
	switch (stall.reason) {
		case "same-output":
			return `the same output ${stall.count} times`;
		case "same-verification-failure":
			return `the same failed verification ${stall.count} times`;
		case "same-diff":
			return `the same changes ${stall.count} times`;
		case "same-envelope":
			return `the same handoff ${stall.count} times`;
		case "no-progress":
			return `${stall.count} turns in a row did nothing`;
		default:
			return unknownWord(stall.reason);
	}
}

export function phaseWord(phase: Schema<"RunPhase">): string {
	switch (phase) {
		case "BOOT":
			return "not begun";
		case "EXECUTE":
			return "working";
		case "VERIFY":
			return "verifying";
		case "DOCS_SYNC":
			return "updating documents";
		case "DONE":
			return "done";
		default:
			return unknownWord(phase);
	}
}

/** "auto, planning". A mode that was not recorded is left out. */
export function modeWords(mode: Schema<"RunMode"> | null, globalMode: Schema<"GlobalMode">): string {
	return [mode, globalMode].flatMap((word) => word?.toLowerCase() ?? []).join(", ");
}

/** What a node's state is told from. */
export interface NodeStateDetail {
	readonly turn: RunState["turns"][string] | undefined;
	readonly tools: RunState["tools"][string] | undefined;
	readonly live: RunState["live"][string] | undefined;
	readonly approvals: readonly Approval[];
}

export function nodeDetail(state: RunState, id: string): NodeStateDetail {
	return {
		turn: state.turns[id],
		tools: state.tools[id],
		live: state.live[id],
		approvals: approvalsOf(state, id),
	};
}

export function approvalsOf(state: Pick<RunState, "approvals">, id: string): Approval[] {
	return Object.values(state.approvals).filter((approval) => approval.nodeId === id);
}

/** "blocked · waits for your approval: Run the tests? · 4 min". */
export function nodeStateWords(node: RunNode, detail: NodeStateDetail, now: number): StateWords {
	switch (node.status) {
		case "running":
			return {
				tone: "running",
				word: "running",
				reason: workWords(detail),
				since: detail.turn?.startedAt ?? node.lastActivityAt,
			};
		case "blocked":
			return blockedWords(node, detail);
		case "failed":
			return {
				tone: "failed",
				word: "failed",
				reason: summaryOf(node) || "its last turn ended in an error",
				since: node.lastActivityAt,
			};
		case "idle":
			return idleWords(node, detail, now);
		default:
			return {
				tone: "neutral",
				word: unknownWord(node.status),
				reason: summaryOf(node) || UNKNOWN_STATE,
				since: node.lastActivityAt,
			};
	}
}

/** The state of an agent without its reason: for a name of it in a line of text. */
export function nodeStatusWord(status: RunNode["status"]): Pick<StateWords, "tone" | "word"> {
	switch (status) {
		case "running":
			return { tone: "running", word: "running" };
		case "blocked":
			return { tone: "waiting", word: "blocked" };
		case "failed":
			return { tone: "failed", word: "failed" };
		case "idle":
			return { tone: "neutral", word: "idle" };
		default:
			return { tone: "neutral", word: unknownWord(status) };
	}
}

function summaryOf(node: RunNode): string {
	return firstLine(node.summary, REASON_CHARS_MAX);
}

/** What an open turn does right now. */
function workWords({ turn, tools, live }: NodeStateDetail): string {
	const tool = tools?.findLast((open) => open.state === "running") ?? tools?.at(-1);
	if (tool !== undefined) return `uses ${firstLine(tool.tool.name, 40)}`;
	if (live !== undefined && live.tail !== "") return live.kind === "thinking" ? "thinks" : "writes";
	if (turn === undefined || isTurnOver(turn.status)) return "works";
	return turn.status === "turn.started" ? "starts its program" : "waits for the model";
}

function blockedWords(node: RunNode, { approvals }: NodeStateDetail): StateWords {
	const oldest = approvals.toSorted((one, other) => Date.parse(one.createdAt) - Date.parse(other.createdAt))[0];
	const words = { tone: "waiting", word: "blocked" } as const;
	const reason = node.block?.reason;
	switch (reason) {
		case "approvals": {
			const more = approvals.length > 1 ? ` and ${approvals.length - 1} more` : "";
			const about = oldest === undefined ? "" : `: ${firstLine(oldest.context, 80)}${more}`;
			return { ...words, reason: `waits for your approval${about}`, since: oldest?.createdAt ?? node.lastActivityAt };
		}
		case "stall":
			return { ...words, reason: `stalled${withSummary(node)}`, since: node.lastActivityAt };
		case "violation": {
			const count = node.block?.paths?.length ?? 0;
			const files = count === 0 ? "files" : numbered(count, "file", "files");
			return { ...words, reason: `wrote ${files} that it may not write`, since: node.lastActivityAt };
		}
		case undefined:
			return { ...words, reason: summaryOf(node) || "waits for you", since: node.lastActivityAt };
		default:
			return { ...words, reason: `${unknownWord(reason)}${withSummary(node)}`, since: node.lastActivityAt };
	}
}

function withSummary(node: RunNode): string {
	const summary = summaryOf(node);
	return summary === "" ? "" : `: ${summary}`;
}

function idleWords(node: RunNode, { approvals }: NodeStateDetail, now: number): StateWords {
	const retryAt = node.retryAt == null ? null : parseTime(node.retryAt);
	const since = node.lastActivityAt;
	if (retryAt !== null && retryAt > now) {
		const why = summaryOf(node) || "its provider cannot answer";
		return { tone: "neutral", word: "idle", reason: `waits until ${formatClock(retryAt)}: ${why}`, since };
	}
	const question = approvals.find((approval) => approval.kind === "question");
	if (question !== undefined) {
		return {
			tone: "waiting",
			word: "idle",
			reason: `asks you: ${firstLine(question.context, 80)}`,
			since: question.createdAt,
		};
	}
	if (node.inboxCount > 0) {
		return {
			tone: "neutral",
			word: "idle",
			reason: `${numbered(node.inboxCount, "input waits", "inputs wait")} for its turn`,
			since,
		};
	}
	return { tone: "neutral", word: "idle", reason: "nothing to do", since };
}

/** The groups of the list, in the order of their urgency. */
export type NodeGroup = "waiting" | "failed" | "running" | "idle";

export const NODE_GROUPS = ["waiting", "failed", "running", "idle"] as const satisfies readonly NodeGroup[];

export function nodeGroup(node: Pick<RunNode, "id" | "status">, approvals: readonly Approval[]): NodeGroup {
	if (node.status === "blocked" || approvals.some((approval) => approval.nodeId === node.id)) return "waiting";
	if (node.status === "failed") return "failed";
	return node.status === "running" ? "running" : "idle";
}

export function groupWord(group: NodeGroup): string {
	switch (group) {
		case "waiting":
			return "Waits for you";
		case "failed":
			return "Failed";
		case "running":
			return "Running";
		case "idle":
			return "Idle";
	}
}

/** What an agent runs on: "claude", or the name of a configured program. */
export function providerWord(node: Pick<RunNode, "provider" | "providerName">): string {
	return node.providerName ?? node.provider;
}

/** The agent that gets a message without a receiver: the only orchestrator, else the only agent. */
export function leaderOf(nodes: Readonly<Record<string, RunNode>>): RunNode | null {
	const all = Object.values(nodes);
	const leaders = all.filter((node) => node.roleTemplate.toLowerCase() === "orchestrator");
	const [only] = leaders.length === 1 ? leaders : all.length === 1 ? all : [];
	return only ?? null;
}

/** Agents in the order in which they were made. */
export function inCreationOrder(nodes: Readonly<Record<string, RunNode>>): RunNode[] {
	const isLeader = (node: RunNode) => (node.roleTemplate.toLowerCase() === "orchestrator" ? 0 : 1);
	return Object.values(nodes).toSorted(
		(one, other) =>
			Date.parse(one.createdAt) - Date.parse(other.createdAt) ||
			isLeader(one) - isLeader(other) ||
			one.label.localeCompare(other.label) ||
			one.id.localeCompare(other.id),
	);
}

export interface LineCounts {
	readonly added: number;
	readonly removed: number;
	readonly files: number;
}

const lineCounts = new WeakMap<Readonly<Record<string, Artifact>>, ReadonlyMap<string, LineCounts>>();

/** The lines that each agent's turns added and removed, all turns together. Computed once for each table of artifacts. */
export function linesByNode(artifacts: Readonly<Record<string, Artifact>>): ReadonlyMap<string, LineCounts> {
	const known = lineCounts.get(artifacts);
	if (known !== undefined) return known;
	const counts = new Map<string, { added: number; removed: number; files: Set<string> }>();
	for (const { nodeId, kind, metadata } of Object.values(artifacts)) {
		if (kind !== "diff" || nodeId == null || metadata == null) continue;
		const sum = counts.get(nodeId) ?? { added: 0, removed: 0, files: new Set<string>() };
		sum.added += metadata.added;
		sum.removed += metadata.removed;
		for (const file of metadata.filesChanged) sum.files.add(file);
		counts.set(nodeId, sum);
	}
	const result = new Map(
		[...counts].map(([id, { added, removed, files }]) => [id, { added, removed, files: files.size }] as const),
	);
	lineCounts.set(artifacts, result);
	return result;
}

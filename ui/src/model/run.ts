/**
 * The state of a run, folded from its events.
 *
 * It begins with the snapshot of `GET /api/runs/:id` (`runFromSnapshot`) or with nothing (`emptyRun`, for a replay from
 * event 1). `applyEvents` folds what comes after: from `/ws`, or a page of `/api/runs/:id/events`. Invariants: an event
 * that was folded before changes nothing; a state is never changed, and parts that did not change stay the same object;
 * events of an unknown type are kept in `unknown` and are no error, so an old page survives a newer server.
 *
 * A snapshot does not have approvals and envelopes. Those that were open before it come from `GET /api/approvals`
 * (`withApprovals`); envelopes are known from the first event that was folded on.
 */

import type { Schema } from "./schema";

export type RunEvent = Schema<"EventView">;
export type RunNode = Schema<"NodeView">;
export type RunEdge = Schema<"EdgeView">;
export type Artifact = Schema<"ArtifactView">;
export type Approval = Schema<"ApprovalView">;
export type Envelope = Schema<"EnvelopeView">;
export type RunFields = Omit<Schema<"RunView">, "nodes" | "edges" | "artifacts" | "lastSeq">;

type ById<T> = Readonly<Record<string, T>>;

/** What an agent streams right now; empty between turns. */
export interface LiveOutput {
	readonly turnId: string | null;
	/** The last characters of the answer or thought that is being written. */
	readonly tail: string;
	/** When the last of them came. */
	readonly at: string;
	readonly kind: "answer" | "thinking";
}

/** A tool that was proposed or runs. */
export interface OpenTool {
	readonly tool: Schema<"ToolView">;
	readonly state: "proposed" | "running";
	readonly since: string;
}

/** How a handoff stands: it waits for a check of the sender's work, waits in an inbox, was read, or was refused. */
export type EnvelopeState =
	| { readonly kind: "held" }
	| { readonly kind: "queued" }
	| { readonly kind: "consumed"; readonly turnId: string }
	| { readonly kind: "refused"; readonly reason: string };

export interface TrackedEnvelope {
	readonly envelope: Envelope;
	readonly state: EnvelopeState;
	readonly seq: number;
}

/** An open turn, or the last one of a node. */
export interface NodeTurn {
	readonly id: string;
	readonly status: Schema<"TurnStatus">;
	readonly startedAt: string;
	readonly endedAt: string | null;
	readonly detail: string | null;
	readonly attempt: number;
	readonly consumed: readonly string[];
}

export interface RunState {
	readonly id: string;
	/** Null before the first event of a replay. */
	readonly run: RunFields | null;
	readonly nodes: ById<RunNode>;
	readonly edges: ById<RunEdge>;
	readonly artifacts: ById<Artifact>;
	/** Open approvals by their id. */
	readonly approvals: ById<Approval>;
	/** By id; only those that were seen in events. */
	readonly envelopes: ById<TrackedEnvelope>;
	/** By node. */
	readonly turns: ById<NodeTurn>;
	readonly live: ById<LiveOutput>;
	readonly tools: ById<readonly OpenTool[]>;
	/** Rules that were seen in events, by id. */
	readonly rules: ById<Schema<"RuleView">>;
	/** The last reason why the run was stopped as stalled. */
	readonly stall: Schema<"StallEvidence"> | null;
	readonly verification: { readonly id: string; readonly since: string } | null;
	readonly isDeleted: boolean;
	/** The number of the last event that was folded. */
	readonly lastSeq: number;
	/** Events of types that this page does not know, newest last; at most `UNKNOWN_EVENTS_MAX`. */
	readonly unknown: readonly RunEvent[];
}

export const UNKNOWN_EVENTS_MAX = 100;
/** The server counts costs in millionths of a dollar, so that many small ones give no error. */
const MICROS = 1_000_000;
/** A card shows one line; more would only cost memory. */
const TAIL_CHARS_MAX = 400;

export function emptyRun(id: string): RunState {
	return {
		id,
		run: null,
		nodes: {},
		edges: {},
		artifacts: {},
		approvals: {},
		envelopes: {},
		turns: {},
		live: {},
		tools: {},
		rules: {},
		stall: null,
		verification: null,
		isDeleted: false,
		lastSeq: 0,
		unknown: [],
	};
}

/** The state that a snapshot describes. */
export function runFromSnapshot(snapshot: Schema<"RunView">): RunState {
	const { nodes, edges, artifacts, lastSeq, ...run } = snapshot;
	return { ...emptyRun(snapshot.id), run, nodes, edges, artifacts, lastSeq };
}

/** Adds the approvals that were open before the first event that was folded. */
export function withApprovals(state: RunState, approvals: readonly Approval[]): RunState {
	const known = Object.fromEntries(approvals.map((approval) => [approval.approvalId, approval]));
	return { ...state, approvals: known };
}

/** Folds one event. */
export function applyEvent(state: RunState, event: RunEvent): RunState {
	return applyEvents(state, [event]);
}

/** Folds events in their order. Each part of the state is copied at most once, however many events there are. */
export function applyEvents(state: RunState, events: readonly RunEvent[]): RunState {
	const draft = new Draft(state);
	let updatedAt: string | null = null;
	for (const event of events) {
		const seq = event.seq ?? null;
		if (seq !== null && seq <= draft.state.lastSeq) continue;
		fold(draft, event);
		if (seq === null) continue;
		draft.merge({ lastSeq: seq });
		updatedAt = event.ts;
	}
	if (updatedAt !== null) draft.patchRun({ updatedAt });
	return draft.state;
}

/** The parts of a state that are tables. */
type Table = {
	[Key in keyof RunState]: RunState[Key] extends ById<unknown>
		? RunState[Key] extends readonly unknown[]
			? never
			: Key
		: never;
}[keyof RunState];
type ValueOf<Key extends Table> = RunState[Key][string];

/** A state under change. Tables are copied before their first change. */
class Draft {
	readonly #copied = new Map<Table, Record<string, unknown>>();

	constructor(public state: RunState) {}

	set<Key extends Table>(table: Key, id: string, value: ValueOf<Key> | undefined): void {
		let copy = this.#copied.get(table);
		if (copy === undefined) {
			copy = { ...this.state[table] };
			this.#copied.set(table, copy);
			this.state = { ...this.state, [table]: copy };
		}
		if (value === undefined) delete copy[id];
		else copy[id] = value;
	}

	merge(fields: Partial<RunState>): void {
		this.state = { ...this.state, ...fields };
	}

	patchNode(id: string | null | undefined, fields: Partial<RunNode>): void {
		const node = id == null ? undefined : this.state.nodes[id];
		if (node !== undefined) this.set("nodes", node.id, { ...node, ...fields });
	}

	patchRun(fields: Partial<RunFields>): void {
		if (this.state.run !== null) this.merge({ run: { ...this.state.run, ...fields } });
	}
}

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;

/** One line for each type of event; what a type does is in the function beside it. */
const FOLDS: { readonly [Type in RunEvent["type"]]: (draft: Draft, event: EventOf<Type>) => void } = {
	"run.patch": foldRunPatch,
	"run.phase": foldPhase,
	"run.mode": (draft, event) => draft.patchRun({ mode: event.mode, globalMode: event.globalMode }),
	"run.stalled": (draft, event) => draft.merge({ stall: event.evidence }),
	"run.deleted": (draft) => draft.merge({ isDeleted: true }),
	"node.patch": foldNodePatch,
	"node.progress": foldProgress,
	"node.log": keepNothing,
	"node.heartbeat": (draft, event) => draft.patchNode(event.nodeId, { connection: event.connection }),
	"node.deleted": foldNodeDeleted,
	"edge.created": (draft, event) => draft.set("edges", event.edge.id, event.edge),
	"edge.deleted": (draft, event) => draft.set("edges", event.edgeId, undefined),
	"handoff.sent": (draft, event) => trackEnvelope(draft, event, event.envelope, { kind: "queued" }),
	"handoff.held": (draft, event) => trackEnvelope(draft, event, event.envelope, { kind: "held" }),
	"handoff.refused": (draft, event) => moveEnvelope(draft, event.payloadId, { kind: "refused", reason: event.reason }),
	"message.user": keepNothing,
	"message.assistant.delta": (draft, event) => foldDelta(draft, event, "answer", event.delta),
	"message.assistant.thinking.delta": (draft, event) => foldDelta(draft, event, "thinking", event.delta),
	"message.assistant.final": (draft, event) => foldWhole(draft, event, "answer", event.content),
	"message.assistant.thinking.final": (draft, event) => foldWhole(draft, event, "thinking", event.content),
	"tool.proposed": (draft, event) => foldTool(draft, event, event.tool, "proposed"),
	"tool.started": (draft, event) => foldTool(draft, event, event.tool, "running"),
	"tool.completed": (draft, event) => dropTool(draft, event.nodeId, event.toolId),
	"approval.requested": foldApproval,
	"approval.resolved": (draft, event) => draft.set("approvals", event.approvalId, undefined),
	"artifact.created": (draft, event) => draft.set("artifacts", event.artifact.id, event.artifact),
	"turn.status": foldTurn,
	"telemetry.usage": foldUsage,
};

function fold(draft: Draft, event: RunEvent): void {
	// A newer server may send types that this page does not know.
	const known = Object.hasOwn(FOLDS, event.type) ? FOLDS[event.type] : keepUnknown;
	(known as (draft: Draft, event: RunEvent) => void)(draft, event);
}

function foldRunPatch(draft: Draft, event: EventOf<"run.patch">): void {
	const { nodes, edges, artifacts, lastSeq: _lastSeq, ...fields } = event.patch;
	if (draft.state.run === null) {
		// The first event of a run carries all fields.
		draft.merge({ run: fields as RunFields, nodes: nodes ?? {}, edges: edges ?? {}, artifacts: artifacts ?? {} });
	} else {
		draft.patchRun(fields);
	}
	const status = event.patch.status;
	if (status === "running") draft.merge({ stall: null });
	if (event.ruleAdded != null) draft.set("rules", event.ruleAdded.id, event.ruleAdded);
	if (event.ruleDeleted != null) draft.set("rules", event.ruleDeleted, undefined);
}

function foldPhase(draft: Draft, event: EventOf<"run.phase">): void {
	draft.patchRun({ phase: event.phase });
	const id = event.verificationId ?? null;
	draft.merge({ verification: id === null ? null : { id, since: event.ts } });
}

function foldNodePatch(draft: Draft, event: EventOf<"node.patch">): void {
	const id = event.nodeId ?? event.patch.id;
	if (id == null) return;
	const node = draft.state.nodes[id];
	// The first event of a node carries all fields.
	if (node === undefined) draft.set("nodes", id, event.patch as RunNode);
	else draft.set("nodes", id, { ...node, ...event.patch });
}

function foldProgress(draft: Draft, event: EventOf<"node.progress">): void {
	// The server says that a program is silent; the agent's own words stay.
	if (event.notice === "silence") return;
	draft.patchNode(event.nodeId, { status: event.status, summary: event.summary, lastActivityAt: event.ts });
}

/** Only a timeline shows them; the state of the run does not change. */
function keepNothing(): void {}

function foldNodeDeleted(draft: Draft, event: EventOf<"node.deleted">): void {
	const id = event.nodeId;
	if (id == null) return;
	for (const table of ["nodes", "turns", "live", "tools"] as const) draft.set(table, id, undefined);
	for (const edge of Object.values(draft.state.edges)) {
		if (edge.from === id || edge.to === id) draft.set("edges", edge.id, undefined);
	}
	for (const approval of Object.values(draft.state.approvals)) {
		if (approval.nodeId === id) draft.set("approvals", approval.approvalId, undefined);
	}
}

function trackEnvelope(draft: Draft, event: RunEvent, envelope: Envelope, state: EnvelopeState): void {
	draft.set("envelopes", envelope.id, { envelope, state, seq: event.seq ?? draft.state.lastSeq });
}

function moveEnvelope(draft: Draft, id: string, state: EnvelopeState): void {
	const tracked = draft.state.envelopes[id];
	if (tracked !== undefined) draft.set("envelopes", id, { ...tracked, state });
}

function foldDelta(draft: Draft, event: RunEvent, kind: LiveOutput["kind"], delta: string): void {
	const id = event.nodeId;
	if (id == null) return;
	const before = draft.state.live[id];
	const begun = before?.kind === kind && before.turnId === (event.turnId ?? null) ? before.tail : "";
	draft.set("live", id, {
		turnId: event.turnId ?? null,
		kind,
		tail: (begun + delta).slice(-TAIL_CHARS_MAX),
		at: event.ts,
	});
}

function foldWhole(draft: Draft, event: RunEvent, kind: LiveOutput["kind"], content: string): void {
	const id = event.nodeId;
	if (id == null) return;
	draft.set("live", id, { turnId: event.turnId ?? null, kind, tail: content.slice(-TAIL_CHARS_MAX), at: event.ts });
}

function foldTool(draft: Draft, event: RunEvent, tool: Schema<"ToolView">, state: OpenTool["state"]): void {
	const id = event.nodeId;
	if (id == null) return;
	const others = (draft.state.tools[id] ?? []).filter((open) => open.tool.id !== tool.id);
	draft.set("tools", id, [...others, { tool, state, since: event.ts }]);
}

function dropTool(draft: Draft, node: string | null | undefined, tool: string): void {
	if (node == null) return;
	const left = (draft.state.tools[node] ?? []).filter((open) => open.tool.id !== tool);
	draft.set("tools", node, left.length === 0 ? undefined : left);
}

function foldApproval(draft: Draft, event: EventOf<"approval.requested">): void {
	const { approvalId, kind, tool, context, createdAt, expiresAt, options, nodeId, turnId } = event;
	if (nodeId == null || turnId == null) {
		keepUnknown(draft, event);
		return;
	}
	const expires = expiresAt == null ? {} : { expiresAt };
	const approval: Approval = { approvalId, kind, tool, context, createdAt, options, nodeId, turnId, ...expires };
	draft.set("approvals", approvalId, approval);
}

function foldTurn(draft: Draft, event: EventOf<"turn.status">): void {
	const { nodeId, turnId } = event;
	if (nodeId == null || turnId == null) {
		keepUnknown(draft, event);
		return;
	}
	const known = draft.state.turns[nodeId];
	const begun: NodeTurn =
		known?.id === turnId
			? known
			: {
					id: turnId,
					status: event.status,
					startedAt: event.ts,
					endedAt: null,
					detail: null,
					attempt: 1,
					consumed: [],
				};
	const isOver = isTurnOver(event.status);
	draft.set("turns", nodeId, {
		...begun,
		status: event.status,
		endedAt: isOver ? event.ts : null,
		detail: event.detail ?? begun.detail,
		attempt: event.attempt ?? begun.attempt,
		consumed: event.consumed ?? begun.consumed,
	});
	for (const id of event.consumed ?? []) moveEnvelope(draft, id, { kind: "consumed", turnId });
	for (const id of event.requeued ?? []) moveEnvelope(draft, id, { kind: "queued" });
	draft.patchNode(nodeId, { turnId: isOver ? null : turnId });
	if (isOver) closeTurn(draft, nodeId);
}

/** A turn that is over streams nothing, runs no tool and asks for nothing. */
function closeTurn(draft: Draft, nodeId: string): void {
	draft.set("live", nodeId, undefined);
	draft.set("tools", nodeId, undefined);
}

/** Whether a status ends its turn. */
export function isTurnOver(status: Schema<"TurnStatus">): boolean {
	switch (status) {
		case "turn.completed":
		case "turn.interrupted":
		case "turn.failed":
			return true;
		case "turn.started":
		case "waiting_for_model":
		case "tool.pending":
		case "awaiting_approval":
			return false;
		default:
			// A status of a newer server: the turn goes on until one comes that ends it.
			return false;
	}
}

function foldUsage(draft: Draft, event: EventOf<"telemetry.usage">): void {
	const { run } = draft.state;
	const node = event.nodeId == null ? undefined : draft.state.nodes[event.nodeId];
	const cost = event.costUsd ?? 0;
	if (node !== undefined) draft.patchNode(node.id, { usage: sum(node.usage, event.usage, cost) });
	if (run !== null) draft.patchRun({ usage: sum(run.usage, event.usage, cost) });
}

function sum(usage: Schema<"UsageView">, more: Schema<"TokensView">, costUsd: number): Schema<"UsageView"> {
	return {
		promptTokens: usage.promptTokens + more.promptTokens,
		completionTokens: usage.completionTokens + more.completionTokens,
		totalTokens: usage.totalTokens + more.totalTokens,
		cachedTokens: usage.cachedTokens + (more.cachedTokens ?? 0),
		costUsd: Math.round((usage.costUsd + costUsd) * MICROS) / MICROS,
	};
}

function keepUnknown(draft: Draft, event: RunEvent): void {
	draft.merge({ unknown: [...draft.state.unknown, event].slice(-UNKNOWN_EVENTS_MAX) });
}

/** An event as it came over the wire; null if it is none. Its type may be one that this page does not know. */
export function readEvent(text: string): RunEvent | null {
	try {
		const value: unknown = JSON.parse(text);
		if (typeof value !== "object" || value === null) return null;
		const isEvent = "type" in value && typeof value.type === "string" && "runId" in value && "ts" in value;
		return isEvent ? (value as RunEvent) : null;
	} catch {
		return null;
	}
}

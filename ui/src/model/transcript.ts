/**
 * What an agent read, thought, said and did, as the rows of one list, folded from the events of the agent.
 *
 * Rows are only ever appended; a later event may replace a row (a text grows, a tool ends), never move it. Rows that did
 * not change stay the same object, so a list draws only what changed. Example: `message.user`, `turn.started`,
 * `tool.proposed`, `tool.completed` become three rows: the message (now read), the turn, the tool with its result.
 */

import { type AgentTurn, applyToTurn, turnOfEvent } from "./agent-turns";
import { type Approval, type Artifact, type Envelope, type EnvelopeState, isTurnOver, type RunEvent } from "./run";
import type { Schema } from "./schema";

/** How far a tool is. */
export type ToolState = "proposed" | "asking" | "running" | "done";

export interface AskedApproval {
	readonly approval: Approval;
	readonly resolution: Schema<"ResolutionView"> | null;
}

interface Row {
	readonly key: string;
	readonly seq: number;
	readonly at: string;
}

export interface TurnRow extends Row {
	readonly kind: "turn";
	readonly turn: AgentTurn;
}

export interface TextRow extends Row {
	readonly kind: "text";
	readonly voice: "answer" | "thinking";
	readonly text: string;
	readonly state: "streaming" | "final" | "interrupted";
	readonly turnId: string | null;
}

export interface ToolRow extends Row {
	readonly kind: "tool";
	readonly tool: Schema<"ToolView">;
	readonly state: ToolState;
	readonly result: Schema<"ToolResult"> | null;
	readonly error: string | null;
	readonly durationMs: number | null;
	readonly asked: AskedApproval | null;
}

export interface MessageRow extends Row {
	readonly kind: "message";
	readonly message: Schema<"MessageView">;
	/** The turn that read it; null while it waits. */
	readonly readBy: string | null;
}

export interface HandoffRow extends Row {
	readonly kind: "handoff";
	readonly direction: "in" | "out" | "self";
	readonly envelope: Envelope;
	readonly state: EnvelopeState;
}

export interface ArtifactRow extends Row {
	readonly kind: "artifact";
	readonly artifact: Artifact;
}

export type Notice =
	| { readonly kind: "silence" }
	| { readonly kind: "claim"; readonly summary: string }
	| { readonly kind: "new-session" }
	| { readonly kind: "workspace"; readonly workspace: Schema<"WorkspaceView"> };

export interface NoticeRow extends Row {
	readonly kind: "notice";
	readonly notice: Notice;
}

/** The end of a turn that did not complete. */
export interface EndRow extends Row {
	readonly kind: "end";
	readonly status: "turn.interrupted" | "turn.failed";
	readonly detail: string | null;
	readonly requeued: number;
}

export type TranscriptRow = TurnRow | TextRow | ToolRow | MessageRow | HandoffRow | ArtifactRow | NoticeRow | EndRow;

export interface Transcript {
	readonly nodeId: string;
	readonly rows: readonly TranscriptRow[];
	/** A hint where the row of a key is. States share it, so each checks that the row there has the key. */
	readonly places: ReadonlyMap<string, number>;
	/** The text that grows now, by its key. */
	readonly streaming: string | null;
	/** What waits to be read: an approval's tool by the approval's id. */
	readonly approvals: Readonly<Record<string, string>>;
	readonly session: string | null;
}

/** The key of the row of a message or a handoff. */
export function inputKey(id: string): string {
	return `input ${id}`;
}

export function emptyTranscript(nodeId: string): Transcript {
	return { nodeId, rows: [], places: new Map(), streaming: null, approvals: {}, session: null };
}

/** Folds events in their order. */
export function applyTranscript(transcript: Transcript, events: readonly RunEvent[]): Transcript {
	if (events.length === 0) return transcript;
	const draft = new TranscriptDraft(transcript);
	for (const event of events) foldEvent(draft, event);
	return draft.finish();
}

class TranscriptDraft {
	readonly nodeId: string;
	readonly #rows: TranscriptRow[];
	readonly #places: Map<string, number>;
	readonly #approvals: Record<string, string>;
	streaming: string | null;
	session: string | null;

	constructor(begun: Transcript) {
		this.nodeId = begun.nodeId;
		this.#rows = [...begun.rows];
		// Shared, because copying it for each frame of a long text would cost more than the text.
		this.#places = begun.places as Map<string, number>;
		this.#approvals = { ...begun.approvals };
		this.streaming = begun.streaming;
		this.session = begun.session;
	}

	/** The row's place, if this transcript has it: the shared table may know it from another one. */
	#placeOf(key: string): number | undefined {
		const at = this.#places.get(key);
		return at !== undefined && this.#rows[at]?.key === key ? at : undefined;
	}

	find(key: string): TranscriptRow | undefined {
		const at = this.#placeOf(key);
		return at === undefined ? undefined : this.#rows[at];
	}

	put(row: TranscriptRow): void {
		const at = this.#placeOf(row.key) ?? this.#rows.length;
		this.#places.set(row.key, at);
		this.#rows[at] = row;
	}

	ask(approvalId: string, toolKey: string): void {
		this.#approvals[approvalId] = toolKey;
	}

	toolOf(approvalId: string): TranscriptRow | undefined {
		const key = this.#approvals[approvalId];
		return key === undefined ? undefined : this.find(key);
	}

	finish(): Transcript {
		return {
			nodeId: this.nodeId,
			rows: this.#rows,
			places: this.#places,
			approvals: this.#approvals,
			streaming: this.streaming,
			session: this.session,
		};
	}
}

function rowOf(event: RunEvent, key: string): Row {
	return { key, seq: event.seq ?? 0, at: event.ts };
}

function foldEvent(draft: TranscriptDraft, event: RunEvent): void {
	if (event.turnId != null && event.nodeId === draft.nodeId) foldTurn(draft, event, event.turnId);
	switch (event.type) {
		case "turn.status":
			foldReading(draft, event);
			break;
		case "message.user":
			draft.put({
				...rowOf(event, inputKey(event.message.id)),
				kind: "message",
				message: event.message,
				readBy: null,
			});
			return;
		case "handoff.sent":
			putHandoff(draft, event, event.envelope, { kind: "queued" });
			break;
		case "handoff.held":
			putHandoff(draft, event, event.envelope, { kind: "held" });
			break;
		case "handoff.refused":
			moveInput(draft, event.payloadId, { kind: "refused", reason: event.reason });
			break;
		case "message.assistant.delta":
			growText(draft, event, "answer", event.delta);
			break;
		case "message.assistant.thinking.delta":
			growText(draft, event, "thinking", event.delta);
			break;
		case "message.assistant.final":
			endText(draft, event, "answer", event.content, event.status);
			break;
		case "message.assistant.thinking.final":
			endText(draft, event, "thinking", event.content, "final");
			break;
		case "tool.proposed":
			putTool(draft, event, event.tool, "proposed");
			break;
		case "tool.started":
			putTool(draft, event, event.tool, "running");
			break;
		case "tool.completed":
			endTool(draft, event);
			break;
		case "approval.requested":
			askApproval(draft, event);
			break;
		case "approval.resolved":
			resolveApproval(draft, event.approvalId, event.resolution);
			break;
		case "artifact.created":
			putArtifact(draft, event, event.artifact);
			break;
		case "node.patch":
			foldPatch(draft, event);
			break;
		case "node.progress":
			foldProgress(draft, event);
			break;
		default:
			return;
	}
}

function foldTurn(draft: TranscriptDraft, event: RunEvent, turnId: string): void {
	const key = `turn ${turnId}`;
	const known = draft.find(key);
	const before = known?.kind === "turn" ? known : undefined;
	const turn = applyToTurn(before?.turn ?? turnOfEvent(turnId, event), event);
	if (before === undefined) draft.put({ ...rowOf(event, key), kind: "turn", turn });
	else if (turn !== before.turn) draft.put({ ...before, turn });
	if (event.type === "turn.status" && isTurnOver(event.status)) endTurn(draft, event, turnId);
}

/** What a turn reads is read, also if it is another agent's turn that reads what this one sent. */
function foldReading(draft: TranscriptDraft, event: Extract<RunEvent, { type: "turn.status" }>): void {
	if (event.turnId == null) return;
	for (const id of event.consumed ?? []) moveInput(draft, id, { kind: "consumed", turnId: event.turnId });
	for (const id of event.requeued ?? []) moveInput(draft, id, { kind: "queued" });
}

function endTurn(draft: TranscriptDraft, event: Extract<RunEvent, { type: "turn.status" }>, turnId: string): void {
	closeText(draft);
	if (event.status !== "turn.failed" && event.status !== "turn.interrupted") return;
	draft.put({
		...rowOf(event, `end ${turnId}`),
		kind: "end",
		status: event.status,
		detail: event.detail ?? null,
		requeued: event.requeued?.length ?? 0,
	});
}

/** A text that got no end, because its program was gone. */
function closeText(draft: TranscriptDraft): void {
	const row = draft.streaming === null ? undefined : draft.find(draft.streaming);
	if (row?.kind === "text") draft.put({ ...row, state: "interrupted" });
	draft.streaming = null;
}

function putHandoff(draft: TranscriptDraft, event: RunEvent, envelope: Envelope, state: EnvelopeState): void {
	const isIn = envelope.toNodeId === draft.nodeId;
	const isOut = envelope.fromNodeId === draft.nodeId;
	if (!isIn && !isOut) return;
	const direction = isIn && isOut ? "self" : isIn ? "in" : "out";
	draft.put({ ...rowOf(event, inputKey(envelope.id)), kind: "handoff", direction, envelope, state });
}

function moveInput(draft: TranscriptDraft, id: string, state: EnvelopeState): void {
	const row = draft.find(inputKey(id));
	if (row?.kind === "handoff") draft.put({ ...row, state });
	if (row?.kind === "message") draft.put({ ...row, readBy: state.kind === "consumed" ? state.turnId : null });
}

type Voice = TextRow["voice"];

function growText(draft: TranscriptDraft, event: RunEvent, voice: Voice, delta: string): void {
	const row = draft.streaming === null ? undefined : draft.find(draft.streaming);
	if (row?.kind === "text" && row.voice === voice && row.turnId === (event.turnId ?? null)) {
		draft.put({ ...row, text: row.text + delta });
		return;
	}
	const key = `text ${event.id}`;
	const turnId = event.turnId ?? null;
	draft.put({ ...rowOf(event, key), kind: "text", voice, text: delta, state: "streaming", turnId });
	draft.streaming = key;
}

function endText(draft: TranscriptDraft, event: RunEvent, voice: Voice, text: string, state: "final" | "interrupted") {
	const row = draft.streaming === null ? undefined : draft.find(draft.streaming);
	const isSame = row?.kind === "text" && row.voice === voice && row.turnId === (event.turnId ?? null);
	if (isSame) draft.put({ ...row, text, state });
	else {
		const turnId = event.turnId ?? null;
		draft.put({ ...rowOf(event, `text ${event.id}`), kind: "text", voice, text, state, turnId });
	}
	draft.streaming = null;
}

function putTool(draft: TranscriptDraft, event: RunEvent, tool: Schema<"ToolView">, state: ToolState): void {
	const key = `tool ${tool.id}`;
	const known = draft.find(key);
	if (known?.kind === "tool") draft.put({ ...known, tool, state });
	else draft.put({ ...newTool(event, key, tool), state });
}

function newTool(event: RunEvent, key: string, tool: Schema<"ToolView">): ToolRow {
	return {
		...rowOf(event, key),
		kind: "tool",
		tool,
		state: "proposed",
		result: null,
		error: null,
		durationMs: null,
		asked: null,
	};
}

function endTool(draft: TranscriptDraft, event: Extract<RunEvent, { type: "tool.completed" }>): void {
	const row = draft.find(`tool ${event.toolId}`);
	// The page that was fetched may begin between a tool's start and its end.
	if (row?.kind !== "tool") return;
	const { result, durationMs } = event;
	draft.put({ ...row, state: "done", result, durationMs, error: event.error?.message ?? null });
}

function askApproval(draft: TranscriptDraft, event: Extract<RunEvent, { type: "approval.requested" }>): void {
	const { approvalId, kind, tool, context, createdAt, expiresAt, options, nodeId, turnId } = event;
	if (nodeId == null || turnId == null) return;
	const expires = expiresAt == null ? {} : { expiresAt };
	const approval: Approval = { approvalId, kind, tool, context, createdAt, options, nodeId, turnId, ...expires };
	const key = `tool ${tool.id}`;
	const known = draft.find(key);
	const row = known?.kind === "tool" ? known : newTool(event, key, tool);
	draft.put({ ...row, state: row.state === "done" ? "done" : "asking", asked: { approval, resolution: null } });
	draft.ask(approvalId, key);
}

function resolveApproval(draft: TranscriptDraft, id: string, resolution: Schema<"ResolutionView">): void {
	const row = draft.toolOf(id);
	if (row?.kind !== "tool" || row.asked === null) return;
	const state = row.state === "asking" ? "proposed" : row.state;
	draft.put({ ...row, state, asked: { ...row.asked, resolution } });
}

/** Prompts and diffs belong to the turn's header, long outputs to their tool. */
function putArtifact(draft: TranscriptDraft, event: RunEvent, artifact: Artifact): void {
	const isShownElsewhere =
		artifact.kind === "prompt" || artifact.kind === "diff" || artifact.name === "tool-output.txt";
	if (!isShownElsewhere) draft.put({ ...rowOf(event, `artifact ${artifact.id}`), kind: "artifact", artifact });
}

function foldPatch(draft: TranscriptDraft, event: Extract<RunEvent, { type: "node.patch" }>): void {
	const { session, workspace } = event.patch;
	// The first event of an agent has all fields, and says nothing that happened.
	const isFirst = event.patch.createdAt !== undefined;
	if (session !== undefined) {
		const next = session.sessionId ?? null;
		if (draft.session !== null && next !== draft.session && !isFirst) {
			putNotice(draft, event, { kind: "new-session" });
		}
		draft.session = next;
	}
	if (workspace != null && !isFirst) putNotice(draft, event, { kind: "workspace", workspace });
}

function foldProgress(draft: TranscriptDraft, event: Extract<RunEvent, { type: "node.progress" }>): void {
	switch (event.notice) {
		case "silence":
			putNotice(draft, event, { kind: "silence" });
			break;
		case "completion-claimed":
			putNotice(draft, event, { kind: "claim", summary: event.summary });
			break;
		case null:
		case undefined:
			return;
	}
}

function putNotice(draft: TranscriptDraft, event: RunEvent, notice: Notice): void {
	draft.put({ ...rowOf(event, `notice ${event.id}`), kind: "notice", notice });
}

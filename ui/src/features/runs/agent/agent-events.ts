/** Which events the screens of agents and edges follow, and how these are fetched. */

import type { EventLogOptions, EventPage } from "../../../api/event-log";
import { answer, api } from "../../../api/http";
import type { LiveRun } from "../../../api/live-run";
import { type AgentTurns, applyTurnEvents, TURN_EVENTS } from "../../../model/agent-turns";
import { HANDOFF_EVENTS, isHandoffEvent } from "../../../model/handoffs";
import { applyEvents, emptyRun, type RunEvent, type RunState } from "../../../model/run";
import { applyTranscript, emptyTranscript, type Transcript } from "../../../model/transcript";

const TIMELINE_PAGE = 400;
const WHOLE_PAGE = 2_000;

/** Everything of an agent but the pieces of texts, which are there as whole texts too. */
const WITHOUT_PIECES = [
	"message.user",
	"message.assistant.final",
	"message.assistant.thinking.final",
	"tool.proposed",
	"tool.started",
	"tool.completed",
	"approval.requested",
	"approval.resolved",
	"artifact.created",
	"handoff.sent",
	"handoff.held",
	"handoff.refused",
	"turn.status",
	"telemetry.usage",
	"node.patch",
	"node.progress",
] as const satisfies readonly RunEvent["type"][];

export interface EventQuery {
	readonly limit: number;
	readonly nodeId?: string;
	readonly types?: readonly string[];
	readonly before?: number | null;
	readonly after?: number;
}

export async function fetchEvents(run: string, query: EventQuery, signal: AbortSignal): Promise<EventPage> {
	const { types, before, ...rest } = query;
	const named = {
		...rest,
		...(types === undefined ? {} : { types: types.join(",") }),
		...(before == null ? {} : { before }),
	};
	const found = await answer(
		api.GET("/api/runs/{run_id}/events", { params: { path: { run_id: run }, query: named }, signal }),
	);
	const { hasMore, nextCursor } = found.page;
	return { events: found.events, before: hasMore ? (nextCursor ?? null) : null };
}

/** What an agent read and did. Handoffs to it are events of their senders, so they are fetched apart. */
export function timelineOptions(run: LiveRun, nodeId: string): EventLogOptions<Transcript> {
	let received: ReceivedEvents | null = null;
	const isToMe = (event: RunEvent) =>
		(event.type === "handoff.sent" || event.type === "handoff.held") && event.envelope.toNodeId === nodeId;
	// What others read tells how the handoffs to them stand.
	const isOthersReading = (event: RunEvent) =>
		event.type === "turn.status" && event.nodeId !== nodeId && (event.consumed != null || event.requeued != null);
	const isFromOthers = (event: RunEvent) => event.nodeId !== nodeId && (isToMe(event) || isOthersReading(event));
	return {
		run,
		isWhole: false,
		fold: { empty: emptyTranscript(nodeId), apply: applyTranscript },
		keeps: (event) => event.nodeId === nodeId || isFromOthers(event),
		async fetchPage(before, signal) {
			// A text that is being written has no whole yet, so the newest page has the pieces.
			const types = before === null ? {} : { types: WITHOUT_PIECES };
			if (before === null) received = new ReceivedEvents(run.runId, isFromOthers);
			const others = received ?? new ReceivedEvents(run.runId, isFromOthers);
			const query = { limit: TIMELINE_PAGE, nodeId, before, ...types };
			// The newest of both are fetched at once; how many more are needed, the page says.
			const [page] = await Promise.all([fetchEvents(run.runId, query, signal), others.fetchNewest(signal)]);
			const first = page.before === null ? 0 : (page.events[0]?.seq ?? 0);
			await others.fetchBackTo(first, signal);
			const isInPage = ({ seq }: RunEvent) => seq != null && seq >= first && (before === null || seq < before);
			const events = [...page.events, ...others.events.filter(isInPage)].toSorted(
				(one, other) => (one.seq ?? 0) - (other.seq ?? 0),
			);
			return { ...page, events };
		},
	};
}

/**
 * Events of other agents that belong into a timeline, fetched back from the newest as far as they are needed: a large run
 * has many turns.
 */
class ReceivedEvents {
	events: readonly RunEvent[] = [];
	/** Where the next older page ends; null before the first page, 0 behind the last one. */
	#before: number | null = null;

	constructor(
		private readonly runId: string,
		private readonly belongs: (event: RunEvent) => boolean,
	) {}

	async fetchNewest(signal: AbortSignal): Promise<void> {
		if (this.#before === null) await this.#fetchPage(signal);
	}

	/** Fetches until all from a number on are there. */
	async fetchBackTo(first: number, signal: AbortSignal): Promise<void> {
		while (this.#before === null || this.#before > first) await this.#fetchPage(signal);
	}

	async #fetchPage(signal: AbortSignal): Promise<void> {
		const query = { limit: WHOLE_PAGE, types: RECEIVED_TYPES, before: this.#before };
		const page = await fetchEvents(this.runId, query, signal);
		this.events = [...page.events.filter(this.belongs), ...this.events];
		this.#before = page.before ?? 0;
	}
}

const RECEIVED_TYPES = ["handoff.sent", "handoff.held", "turn.status"] as const satisfies readonly RunEvent["type"][];

/** All turns of an agent, in short; of the whole run without an agent. */
export function turnsOptions(run: LiveRun, nodeId: string | null): EventLogOptions<AgentTurns> {
	const empty: AgentTurns = [];
	return {
		run,
		isWhole: true,
		fold: { empty, apply: applyTurnEvents },
		keeps: (event) => (nodeId === null || event.nodeId === nodeId) && TURN_EVENTS.some((type) => type === event.type),
		fetchPage: (before, signal) =>
			fetchEvents(
				run.runId,
				{ limit: WHOLE_PAGE, types: TURN_EVENTS, before, ...(nodeId === null ? {} : { nodeId }) },
				signal,
			),
	};
}

/** All handoffs of the run with their states. */
export function handoffOptions(run: LiveRun): EventLogOptions<RunState> {
	return {
		run,
		isWhole: true,
		fold: { empty: emptyRun(run.runId), apply: applyEvents },
		keeps: isHandoffEvent,
		fetchPage: (before, signal) => fetchEvents(run.runId, { limit: WHOLE_PAGE, types: HANDOFF_EVENTS, before }, signal),
	};
}

/** What an agent's program printed beside its protocol. */
export function logOptions(run: LiveRun, nodeId: string): EventLogOptions<readonly LogLine[]> {
	const empty: readonly LogLine[] = [];
	return {
		run,
		isWhole: false,
		fold: { empty, apply: (lines, events) => [...lines, ...events.flatMap(logLines)] },
		keeps: (event) => event.nodeId === nodeId && event.type === "node.log",
		fetchPage: (before, signal) =>
			fetchEvents(run.runId, { limit: TIMELINE_PAGE, types: ["node.log"], nodeId, before }, signal),
	};
}

export interface LogLine {
	readonly key: string;
	readonly at: string;
	readonly text: string;
}

function logLines(event: RunEvent): LogLine[] {
	return event.type === "node.log" ? [{ key: event.id, at: event.ts, text: event.text }] : [];
}

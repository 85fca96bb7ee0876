/**
 * A run's log as moments: the state after any event, without folding all of the log each time.
 *
 * While the log is read, a state is kept every `STEP` events. To show a moment is to fold at most `STEP` events from the
 * state before it, which is quick enough for a slider.
 */

import { applyEvents, emptyRun, type RunEvent, type RunState } from "./run";
import { modeWords, phaseWord } from "./run-words";
import { firstLine } from "./text-safety";

const STEP = 400;

export class ReplayLog {
	readonly #events: RunEvent[] = [];
	/** The states after 0, STEP, 2 × STEP … events. */
	readonly #kept: RunState[];
	#last: { readonly count: number; readonly state: RunState };

	constructor(runId: string) {
		const empty = emptyRun(runId);
		this.#kept = [empty];
		this.#last = { count: 0, state: empty };
	}

	get events(): readonly RunEvent[] {
		return this.#events;
	}

	/** The number of the last event that was read; 0 if none was. */
	get lastSeq(): number {
		return this.#events.at(-1)?.seq ?? 0;
	}

	/** Events that follow the known ones. What is known already is left out. */
	add(events: readonly RunEvent[]): void {
		for (const event of events) {
			if (event.seq == null || event.seq <= this.lastSeq) continue;
			this.#events.push(event);
			if (this.#events.length % STEP !== 0) continue;
			const before = this.#kept.at(-1) ?? emptyRun(event.runId);
			this.#kept.push(applyEvents(before, this.#events.slice(-STEP)));
		}
	}

	/** How many events have a number up to this one. */
	countUpTo(seq: number): number {
		return countUpTo(this.#events, seq);
	}

	/** The state after the event with this number. */
	stateAt(seq: number): RunState {
		const count = this.countUpTo(seq);
		if (count === this.#last.count) return this.#last.state;
		const at = Math.min(Math.floor(count / STEP), this.#kept.length - 1);
		const isOnward = this.#last.count <= count && this.#last.count >= at * STEP;
		const begun = isOnward ? this.#last : { count: at * STEP, state: this.#kept[at] ?? this.#last.state };
		const state = applyEvents(begun.state, this.#events.slice(begun.count, count));
		this.#last = { count, state };
		return state;
	}
}

/** How many of these events, which are in their order, have a number up to this one. */
export function countUpTo(events: readonly RunEvent[], seq: number): number {
	let [low, high] = [0, events.length];
	while (low < high) {
		const middle = (low + high) >> 1;
		if ((events[middle]?.seq ?? 0) <= seq) low = middle + 1;
		else high = middle;
	}
	return low;
}

/** Whether an event is worth a stop when going from one to the next: streams and beats of the clock are not. */
export function isStep(event: RunEvent): boolean {
	switch (event.type) {
		case "message.assistant.delta":
		case "message.assistant.thinking.delta":
		case "node.heartbeat":
		case "node.progress":
		case "node.log":
		case "telemetry.usage":
			return false;
		default:
			return true;
	}
}

/** The number of the next or previous event worth a stop; null if there is none. */
export function nextStep(events: readonly RunEvent[], from: number, by: 1 | -1): number | null {
	for (let at = from; at >= 0 && at < events.length; at += by) {
		const event = events[at];
		if (event?.seq != null && isStep(event)) return event.seq;
	}
	return null;
}

/** What happened, in a few words. The agent is told beside it. */
export function eventWords(event: RunEvent): string {
	switch (event.type) {
		case "run.patch":
			return patchWords(event.patch.status ?? null, "changed the run");
		case "run.phase":
			return `the run is ${phaseWord(event.phase)}`;
		case "run.mode":
			return `mode ${modeWords(event.mode, event.globalMode)}`;
		case "run.stalled":
			return "the run stalled";
		case "run.deleted":
			return "the run was deleted";
		case "node.patch":
			return event.patch.label === undefined
				? patchWords(event.patch.status ?? null, "changed")
				: "was added or renamed";
		case "node.progress":
			return firstLine(event.summary, 100);
		case "node.log":
			return "wrote to its log";
		case "node.heartbeat":
			return "is alive";
		case "node.deleted":
			return "was deleted";
		case "edge.created":
			return "agents were connected";
		case "edge.deleted":
			return "agents were disconnected";
		case "handoff.sent":
			return `handed over: ${firstLine(event.envelope.payload.message, 80)}`;
		case "handoff.held":
			return `a handoff waits for its check: ${firstLine(event.envelope.payload.message, 80)}`;
		case "handoff.refused":
			return `a handoff was refused: ${firstLine(event.reason, 80)}`;
		case "message.user":
			return `message: ${firstLine(event.message.content, 80)}`;
		case "message.assistant.delta":
		case "message.assistant.thinking.delta":
			return "writes";
		case "message.assistant.final":
			return `said: ${firstLine(event.content, 80)}`;
		case "message.assistant.thinking.final":
			return `thought: ${firstLine(event.content, 80)}`;
		case "tool.proposed":
			return `wants to use ${firstLine(event.tool.name, 40)}`;
		case "tool.started":
			return `uses ${firstLine(event.tool.name, 40)}`;
		case "tool.completed":
			return event.result.ok ? "the tool is done" : "the tool failed";
		case "approval.requested":
			return `asked you: ${firstLine(event.context, 80)}`;
		case "approval.resolved":
			return `you answered: ${event.resolution.status}`;
		case "artifact.created":
			return `made ${firstLine(event.artifact.name, 60)}`;
		case "turn.status":
			return event.status.replace("turn.", "turn ").replaceAll("_", " ");
		case "telemetry.usage":
			return "used tokens";
		default:
			// A newer server may have more types.
			return firstLine((event as { readonly type: string }).type, 60);
	}
}

function patchWords(status: string | null, otherwise: string): string {
	return status === null ? otherwise : `became ${status}`;
}

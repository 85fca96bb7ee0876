/** One turn of an agent with its inputs, however old it is. */

import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ApiError } from "../../../api/errors";
import { keys } from "../../../api/keys";
import { type AgentTurn, applyTurnEvents } from "../../../model/agent-turns";
import type { RunEvent } from "../../../model/run";
import { applyTranscript, emptyTranscript, type Transcript } from "../../../model/transcript";
import { fetchEvents } from "./agent-events";

export interface WholeTurn {
	readonly turn: AgentTurn;
	readonly transcript: Transcript;
}

const PAGE = 2_000;
/** Inputs lie before their turn, mostly close by. */
const INPUT_PAGES_MAX = 10;

/** Refetched when the run changes, so an open turn grows. */
export function useAgentTurn(run: string, turn: string): UseQueryResult<WholeTurn> {
	return useQuery({
		queryKey: keys.run(run, "turn", turn),
		queryFn: ({ signal }) => fetchTurn(run, turn, signal),
	});
}

async function fetchTurn(run: string, id: string, signal: AbortSignal): Promise<WholeTurn> {
	const { steps, later } = await fetchSteps(run, id, signal);
	const [first] = steps;
	const last = steps.at(-1);
	if (first?.nodeId == null || first.seq == null || last?.seq == null) {
		throw new ApiError(404, "NotFound", `the run has no agent turn ${id}`);
	}
	const { nodeId } = first;
	const isOver = last.type === "turn.status" && last.status !== "turn.started" && steps.length > 1;
	const own = await fetchRange(run, nodeId, first.seq, isOver ? last.seq : null, signal);
	const events = own.filter((event) => event.turnId === id);
	const [turn] = applyTurnEvents([], events);
	if (turn === undefined) throw new ApiError(404, "NotFound", `the run has no agent turn ${id}`);
	const inputs = await fetchInputs(run, turn, signal);
	return { turn, transcript: applyTranscript(emptyTranscript(nodeId), [...inputs, ...events, ...later]) };
}

interface Steps {
	/** The states that the turn went through, from its first one. */
	readonly steps: readonly RunEvent[];
	/** What other turns read after it, such as its handoffs. */
	readonly later: readonly RunEvent[];
}

/** There is no route for one turn, so the states of all turns are read back to its beginning. */
async function fetchSteps(run: string, id: string, signal: AbortSignal): Promise<Steps> {
	let all: readonly RunEvent[] = [];
	for (let before: number | null = null; ; ) {
		const page = await fetchEvents(run, { limit: PAGE, types: ["turn.status"], before }, signal);
		all = [...page.events, ...all];
		const steps = all.filter((event) => event.turnId === id);
		const [first] = steps;
		const isWhole = first?.type === "turn.status" && first.status === "turn.started";
		if (isWhole || page.before === null) {
			const later = all.filter((event) => event.turnId !== id && (event.seq ?? 0) > (first?.seq ?? 0));
			return { steps, later: later.filter((event) => event.nodeId !== first?.nodeId) };
		}
		before = page.before;
	}
}

async function fetchRange(run: string, nodeId: string, first: number, last: number | null, signal: AbortSignal) {
	const events: RunEvent[] = [];
	for (let after = first - 1; ; ) {
		const page = await fetchEvents(run, { limit: PAGE, nodeId, after }, signal);
		events.push(...page.events);
		const end = page.events.at(-1)?.seq ?? null;
		if (end === null || page.events.length < PAGE || (last !== null && end >= last)) return events;
		after = end;
	}
}

async function fetchInputs(run: string, turn: AgentTurn, signal: AbortSignal): Promise<RunEvent[]> {
	const wanted = new Set(turn.consumed);
	let found: RunEvent[] = [];
	let before: number | null = turn.firstSeq;
	for (let pages = 0; wanted.size > found.length && before !== null && pages < INPUT_PAGES_MAX; pages += 1) {
		const page = await fetchEvents(run, { limit: PAGE, types: ["message.user", "handoff.sent"], before }, signal);
		found = [...page.events.filter((event) => wanted.has(inputId(event))), ...found];
		before = page.before;
	}
	return found;
}

function inputId(event: RunEvent): string {
	switch (event.type) {
		case "message.user":
			return event.message.id;
		case "handoff.sent":
			return event.envelope.id;
		default:
			return "";
	}
}

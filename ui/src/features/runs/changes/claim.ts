/** The newest claim of completion: who, when, and in which words. */

import type { RunEvent } from "../../../model/run";
import { fetchEvents } from "../agent/agent-events";

export interface CompletionClaim {
	readonly nodeId: string;
	readonly turnId: string | null;
	readonly at: string;
	readonly summary: string;
	/** What the agent says that it checked; null if it says nothing. */
	readonly evidence: string | null;
}

const PAGE = 2_000;
/** So far back a claim is looked for; an older one is of no use beside the work of today. */
const PAGES_MAX = 5;
/** The call stands just before the progress event that it makes. */
const CALLS_BEFORE = 5;

export async function fetchClaim(run: string, signal: AbortSignal): Promise<CompletionClaim | null> {
	let before: number | null = null;
	for (let pages = 0; pages < PAGES_MAX; pages += 1) {
		const page = await fetchEvents(run, { limit: PAGE, types: ["node.progress"], before }, signal);
		const found = page.events.findLast(
			(event) => event.type === "node.progress" && event.notice === "completion-claimed",
		);
		if (found?.type === "node.progress" && found.nodeId != null) {
			const { nodeId, turnId = null, ts: at, summary } = found;
			return { nodeId, turnId, at, summary, evidence: await fetchEvidence(run, found, signal) };
		}
		if (page.before === null) return null;
		before = page.before;
	}
	return null;
}

async function fetchEvidence(run: string, claim: RunEvent, signal: AbortSignal): Promise<string | null> {
	if (claim.seq == null || claim.nodeId == null) return null;
	const query = { limit: CALLS_BEFORE, types: ["tool.proposed"], nodeId: claim.nodeId, before: claim.seq };
	const { events } = await fetchEvents(run, query, signal);
	const call = events.findLast((event) => event.type === "tool.proposed" && event.tool.name.endsWith("complete_run"));
	if (call?.type !== "tool.proposed") return null;
	const { args } = call.tool;
	const evidence = typeof args === "object" && args !== null && "evidence" in args ? args.evidence : null;
	if (evidence == null) return null;
	return typeof evidence === "string" ? evidence : JSON.stringify(evidence);
}

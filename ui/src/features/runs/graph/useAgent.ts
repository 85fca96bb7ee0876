/** What a card, a row and a drawer tell about one agent, each part read where it changes. */

import { useMemo } from "react";
import { useNow } from "../../../components/Time";
import type { Approval, RunNode, RunState } from "../../../model/run";
import { approvalsOf, type LineCounts, linesByNode, nodeStateWords, type StateWords } from "../../../model/run-words";
import { safeText } from "../../../model/text-safety";
import { useRun, useRunSource } from "./run-source";

export interface Agent {
	readonly node: RunNode;
	readonly words: StateWords;
	/** The last words of what it writes, or what its tool does. */
	readonly line: string;
	readonly approvals: readonly Approval[];
	readonly lines: LineCounts;
}

const NO_LINES: LineCounts = { added: 0, removed: 0, files: 0 };
const LINE_CHARS_MAX = 90;

/** Null once the agent is deleted. */
export function useAgent(id: string): Agent | null {
	const clock = useNow();
	const now = useRunSource().time() ?? clock;
	const node = useRun((state) => state.nodes[id]);
	const turn = useRun((state) => state.turns[id]);
	const tools = useRun((state) => state.tools[id]);
	const live = useRun((state) => state.live[id]);
	const approvalTable = useRun((state) => state.approvals);
	const lines = useRun((state) => linesByNode(state.artifacts).get(id)) ?? NO_LINES;
	const approvals = useMemo(() => approvalsOf({ approvals: approvalTable }, id), [approvalTable, id]);
	if (node === undefined) return null;
	const words = nodeStateWords(node, { turn, tools, live, approvals }, now);
	return { node, words, line: lineOf(node, tools, live), approvals, lines };
}

function lineOf(
	node: RunNode,
	tools: RunState["tools"][string] | undefined,
	live: RunState["live"][string] | undefined,
): string {
	const tool = tools?.at(-1);
	if (tool !== undefined) return tail(`${tool.tool.name} ${argumentsLine(tool.tool.args)}`, "start");
	if (live !== undefined && live.tail !== "") return tail(live.tail, "end");
	// A failed agent's summary is already the reason of its state.
	return node.status === "idle" || node.status === "running" ? tail(node.summary, "start") : "";
}

function argumentsLine(args: unknown): string {
	if (typeof args !== "object" || args === null) return "";
	const first = Object.values(args).find((value) => typeof value === "string");
	return first === undefined ? JSON.stringify(args) : first;
}

/** One line of a text: its beginning, or what was written last. */
function tail(text: string, keep: "start" | "end"): string {
	const cut = keep === "end" ? text.slice(-LINE_CHARS_MAX) : text.slice(0, LINE_CHARS_MAX);
	const line = safeText(cut).replace(/\s+/g, " ").trim();
	if (text.length <= LINE_CHARS_MAX) return line;
	return keep === "end" ? `…${line}` : `${line}…`;
}

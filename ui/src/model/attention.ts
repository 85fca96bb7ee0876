/** What waits for a person: the words, the order and the grouping of inbox items. */

import { labelWithAlias } from "./agent-name";
import { parseRef, type Ref } from "./refs";
import type { Schema } from "./schema";
import { unknownWord } from "./unknown-word";

export type AttentionItem = Schema<"AttentionItem">;
export type AttentionKind = Schema<"AttentionKind">;
export type AttentionAction = Schema<"AttentionAction">;

/** All kinds, in the order in which filters show them. */
export const ATTENTION_KINDS = [
	"approval",
	"question",
	"stall",
	"failure",
	"conflict",
	"violation",
	"budget",
	"finished",
] as const satisfies readonly AttentionKind[];

/** A filter of the inbox, as its URL has it. */
export interface AttentionFilter {
	readonly kind: AttentionKind | null;
	readonly run: string | null;
}

/** Kind and ref together name an item. */
export function attentionKey(item: AttentionItem): string {
	return `${item.kind} ${item.ref}`;
}

export function attentionKindWord(kind: AttentionKind): string {
	switch (kind) {
		case "approval":
			return "approval";
		case "question":
			return "question";
		case "stall":
			return "stalled";
		case "failure":
			return "failed";
		case "conflict":
			return "conflict";
		case "violation":
			return "violation";
		case "budget":
			return "budget";
		case "finished":
			return "finished";
		default:
			return unknownWord(kind);
	}
}

/** What a person calls the agent of an item: its label, and its alias where that is another word. */
export function agentName({
	nodeLabel,
	nodeAlias,
}: Pick<AttentionItem, "nodeLabel" | "nodeAlias">): string | undefined {
	return nodeLabel == null ? undefined : labelWithAlias(nodeLabel, nodeAlias ?? null);
}

/** The open approval that an item is about. */
export function approvalOf(item: AttentionItem, open: readonly Schema<"ApprovalOfRun">[]) {
	return open.find(({ approval }) => `approval:${approval.approvalId}` === item.ref);
}

/** What explains an item: the turn that it comes from, or else its run. */
export function causeOf(item: AttentionItem, open: readonly Schema<"ApprovalOfRun">[]): string {
	const approval = approvalOf(item, open)?.approval;
	if (approval !== undefined) return `turn:${approval.turnId}`;
	return item.ref.startsWith("turn:") ? item.ref : `run:${item.runId}`;
}

/** Whether it waits for a decision. What is finished is told, but nothing stands still because of it. */
export function isWaiting(item: AttentionItem): boolean {
	return item.kind !== "finished";
}

export function readAttentionKind(text: string | null): AttentionKind | null {
	return ATTENTION_KINDS.find((kind) => kind === text) ?? null;
}

/** The items that a filter lets through, oldest first. */
export function filterAttention(items: readonly AttentionItem[], filter: AttentionFilter): AttentionItem[] {
	const isWanted = (item: AttentionItem) =>
		(filter.kind === null || item.kind === filter.kind) && (filter.run === null || item.runId === filter.run);
	return items.filter(isWanted).toSorted((one, other) => Date.parse(one.since) - Date.parse(other.since));
}

/** How many items of each kind there are; kinds without one are left out. */
export function countByKind(items: readonly AttentionItem[]): Map<AttentionKind, number> {
	const counts = new Map<AttentionKind, number>();
	for (const item of items) counts.set(item.kind, (counts.get(item.kind) ?? 0) + 1);
	return counts;
}

/** Items that were not there before; a live region announces them. */
export function newItems(before: readonly AttentionItem[], after: readonly AttentionItem[]): AttentionItem[] {
	const known = new Set(before.map(attentionKey));
	return after.filter((item) => !known.has(attentionKey(item)));
}

/** What an item is about. */
export function attentionRef(item: AttentionItem): Ref | null {
	return parseRef(item.ref);
}

/** The files that a violation or a conflict is about, from the diff of its turn. */
export function questionedFiles(
	kind: AttentionKind,
	turn: string,
	artifacts: readonly Schema<"ArtifactView">[],
): readonly string[] {
	const diff = artifacts.findLast((artifact) => artifact.kind === "diff" && artifact.metadata?.turnId === turn);
	const metadata = diff?.metadata;
	if (metadata === undefined || metadata === null) return [];
	return (kind === "violation" ? metadata.violation : metadata.shared) ?? [];
}

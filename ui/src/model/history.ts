/** Histories and turns in words: where a history comes from, and what a turn says in one line. */

import type { Schema } from "./schema";
import { firstLine } from "./text-safety";

export type Origin = "run" | "session" | "client" | "ledger";
export const ORIGINS: readonly Origin[] = ["run", "session", "client", "ledger"];

export const ORIGIN_WORDS: Record<Origin, string> = {
	run: "From runs",
	session: "From sessions",
	client: "From clients",
	ledger: "Of ledgers",
};

type Labels = Readonly<Record<string, string>>;

const RUN = "turnkeep.run";
const NODE = "turnkeep.node";
const WORLD = "turnkeep.ledger.world";

/** Where a history comes from, by the labels that its writer set. */
export function originOf(labels: Labels): Origin {
	if (labels[WORLD] !== undefined) return "ledger";
	if (Object.keys(labels).some((key) => key === RUN || key.startsWith(`${RUN}.`))) return "run";
	// The broker names the session by its id; a label that only happens to be called so is a client's.
	return /^[0-9a-f]{32}$/.test(labels.session ?? "") ? "session" : "client";
}

/** The ref of the thing that a history belongs to; null for a client's. */
export function originRef(labels: Labels): string | null {
	const { [RUN]: run, [NODE]: node, [WORLD]: world, session } = labels;
	switch (originOf(labels)) {
		case "run":
			if (node !== undefined) return `node:${node}`;
			return run === undefined ? null : `run:${run}`;
		case "session":
			return `session:${session}`;
		case "ledger":
			return `world:${world}`;
		case "client":
			return null;
	}
}

/** The run that a history is of; null if there is none. */
export function runOf(labels: Labels): string | null {
	return labels[RUN] ?? null;
}

/** The labels that say more than the ref of what the history belongs to. */
export function ownLabels(labels: Labels): Labels {
	const isTold = (key: string) => key === RUN || key === NODE || key === WORLD;
	return originRef(labels) === null
		? labels
		: Object.fromEntries(Object.entries(labels).filter(([key]) => !isTold(key)));
}

/** Labels as people read them: `agent=planner`, sorted by key. */
export function labelWords(labels: Labels): string[] {
	return Object.keys(labels)
		.toSorted()
		.map((key) => `${key}=${labels[key]}`);
}

/** Reads `key=value` lines; the error is a sentence. */
export function readLabels(text: string): { readonly labels: Record<string, string>; readonly error: string | null } {
	const labels: Record<string, string> = {};
	for (const line of text.split("\n")) {
		const trimmed = line.trim();
		if (trimmed === "") continue;
		const at = trimmed.indexOf("=");
		const key = trimmed.slice(0, at).trim();
		if (at < 1 || key === "") return { labels, error: `“${trimmed}” is not of the form key=value` };
		labels[key] = trimmed.slice(at + 1).trim();
	}
	return { labels, error: null };
}

export type TurnWords =
	| { readonly kind: "text"; readonly text: string }
	/** Its payload cannot be shown by fields. */
	| { readonly kind: "bad"; readonly code: string; readonly message: string };

/** Fields that usually say what a turn is about, the best first. */
const TELLING = ["text", "content", "message", "prompt", "title", "summary", "answer", "question", "name"];
const CHARS_MAX = 200;

/** What a turn says, in one line. */
export function turnWords(turn: Schema<"Turn">): TurnWords {
	if (turn.error !== undefined) return { kind: "bad", code: turn.error.code, message: turn.error.message };
	const data = turn.data ?? {};
	const telling = TELLING.map((key) => (data as Record<string, unknown>)[key]).find(
		(value) => typeof value === "string" && value !== "",
	);
	const text = typeof telling === "string" ? telling : (firstText(data) ?? JSON.stringify(data));
	return { kind: "text", text: firstLine(text.slice(0, 4 * CHARS_MAX), CHARS_MAX) };
}

function firstText(value: unknown): string | null {
	if (typeof value === "string") return value === "" ? null : value;
	if (typeof value !== "object" || value === null) return null;
	for (const each of Object.values(value)) {
		const found = firstText(each);
		if (found !== null) return found;
	}
	return null;
}

/**
 * A line of a ledger's audit as a sentence: who did it, and what. A line of a kind that this build does not know keeps
 * the server's own word.
 */

import { OPERATOR_ID } from "./ledger";
import type { Schema } from "./schema";

export type AuditLine = Schema<"AuditLine">;

/** What a line is about. */
export const AUDIT_KINDS = ["looks", "tokens", "settings", "refusals", "writer", "other"] as const;
export type AuditKind = (typeof AUDIT_KINDS)[number];

export const AUDIT_KIND_WORDS: Record<AuditKind, string> = {
	looks: "looks",
	tokens: "tokens",
	settings: "settings and people",
	refusals: "refusals",
	writer: "attached writer",
	other: "other",
};

/** The kind that a URL names; null if it names none. */
export function readAuditKind(text: string | null): AuditKind | null {
	return AUDIT_KINDS.find((kind) => kind === text) ?? null;
}

/** A piece of a sentence: words, or something that has a page of its own. */
export type AuditPiece = string | { readonly person: string } | { readonly ledger: string };

export interface AuditWords {
	readonly kind: AuditKind;
	/** What was done, without who did it. */
	readonly said: readonly AuditPiece[];
}

export function auditWords({ what, details }: { readonly what: string; readonly details: unknown }): AuditWords {
	const text = (name: string) => textOf(details, name);
	const person = (name: string): AuditPiece => (text(name) === "" ? "a person" : { person: text(name) });
	const line = (kind: AuditKind, ...said: AuditPiece[]): AuditWords => ({ kind, said });
	const withReason = (words: string, name: string) => (text(name) === "" ? words : `${words}: ${text(name)}`);
	switch (what) {
		case "acting-as":
			return line("looks", isRead(text("method")) ? "saw the ledger as " : "acted as ", person("person"));
		case "audit-read":
			return line("looks", readWords(text("what")));
		case "store-read":
			return line("looks", `read the ledger’s records past the ledger (${text("how") || "through the store"})`);
		case "token-minted":
			return line("tokens", `made the token ${text("token_id")} for `, person("person_id"), rightsOf(details));
		case "token-revoked":
			return line("tokens", `revoked the token ${text("token_id")}`);
		case "configured":
			return line("settings", "set the ledger’s settings");
		case "forked":
			return line("settings", "made this ledger as a fork of ", { ledger: text("world_id") });
		case "person":
			return line("settings", "added or changed ", person("person_id"));
		case "rejection":
			return line("refusals", `was refused: ${text("reason") || "no reason was recorded"}`);
		case "outcome":
			return line("refusals", withReason("got an answer without an entry", "rejection"));
		case "writer-failed":
			return line("writer", withReason("failed", "why"));
		case "tool":
			return line("writer", withReason("asked a question", "fault"));
		case "rehydration":
			return line("writer", "was full, and the next one began with quotations of the past");
		case "remarks":
			return line("other", "sent remarks with a request");
		default:
			return line("other", what);
	}
}

function isRead(method: string): boolean {
	return method === "" || method === "GET" || method === "HEAD";
}

/** Which records an audit read showed. */
function readWords(what: string): string {
	switch (what) {
		case "":
			return "read every entry, whoever it was addressed to";
		case "derived":
			return "read the notes and packs that were derived from the ledger";
		case "verify":
			return "checked the ledger against its records";
		default:
			return `read ${what}`;
	}
}

function rightsOf(details: unknown): string {
	const mayWrite = typeof details === "object" && details !== null && "write" in details && details.write === true;
	return mayWrite ? ", which may read and write" : ", which may read";
}

/** A member that is a text; empty where there is none. */
function textOf(details: unknown, name: string): string {
	if (typeof details !== "object" || details === null) return "";
	const value = (details as Record<string, unknown>)[name];
	return typeof value === "string" ? value : "";
}

/** Who did it. */
export type Principal =
	| { readonly kind: "owner" }
	| { readonly kind: "system" }
	/** The program that is attached to the ledger and answers the operator. */
	| { readonly kind: "writer" }
	| { readonly kind: "person"; readonly person: string }
	| { readonly kind: "unknown"; readonly text: string };

export function readPrincipal(principal: string): Principal {
	if (principal === "owner" || principal === "system" || principal === "writer") return { kind: principal };
	if (principal.startsWith("person:")) return { kind: "person", person: principal.slice("person:".length) };
	return { kind: "unknown", text: principal };
}

/** The details with the operator's label for its id, which people never see. The id may be a part of a path. */
export function labelledDetails(details: unknown, label: string): unknown {
	if (typeof details === "string")
		return details
			.split("/")
			.map((part) => (part === OPERATOR_ID ? label : part))
			.join("/");
	if (Array.isArray(details)) return details.map((item) => labelledDetails(item, label));
	if (typeof details !== "object" || details === null) return details;
	return Object.fromEntries(Object.entries(details).map(([name, value]) => [name, labelledDetails(value, label)]));
}

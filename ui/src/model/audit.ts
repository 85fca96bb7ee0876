/** The lines of a ledger's audit in words. A line of a kind that this build does not know keeps the server's own word. */

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

export interface AuditWords {
	readonly kind: AuditKind;
	readonly text: string;
}

export function auditWords({ what, details }: { readonly what: string; readonly details: unknown }): AuditWords {
	const of = (name: string) => textOf(details, name);
	const line = (kind: AuditKind, text: string): AuditWords => ({ kind, text });
	switch (what) {
		case "acting-as":
			return line("looks", `${isRead(of("method")) ? "saw the ledger as" : "acted as"} ${of("person") || "a person"}`);
		case "audit-read":
			return line("looks", readWords(of("what")));
		case "store-read":
			return line("looks", `read the ledger’s records past the ledger (${of("how") || "through the store"})`);
		case "token-minted":
			return line("tokens", `made the token ${of("token_id")} for ${of("person_id")}, ${rightsOf(details)}`);
		case "token-revoked":
			return line("tokens", `revoked the token ${of("token_id")}`);
		case "configured":
			return line("settings", "set the ledger’s settings");
		case "forked":
			return line("settings", `made this ledger as a fork of ${of("world_id")}`);
		case "person":
			return line("settings", `added or changed the person ${of("person_id")}`);
		case "rejection":
			return line("refusals", `was refused: ${of("reason") || "no reason was recorded"}`);
		case "outcome":
			return line("refusals", `got an answer without an entry${of("rejection") === "" ? "" : `: ${of("rejection")}`}`);
		case "writer-failed":
			return line("writer", `the attached writer failed: ${of("why")}`);
		case "tool":
			return line("writer", `the attached writer asked a question${of("fault") === "" ? "" : `: ${of("fault")}`}`);
		case "rehydration":
			return line("writer", "the attached writer was full, and the next one began with quotations of the past");
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
	return mayWrite ? "which may read and write" : "which may read";
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
	| { readonly kind: "person"; readonly person: string }
	| { readonly kind: "unknown"; readonly text: string };

export function readPrincipal(principal: string): Principal {
	if (principal === "owner") return { kind: "owner" };
	if (principal === "system") return { kind: "system" };
	if (principal.startsWith("person:")) return { kind: "person", person: principal.slice("person:".length) };
	return { kind: "unknown", text: principal };
}

/**
 * What a wider answer to an approval would also allow, in plain words.
 *
 * The server makes the rule (`crates/runtime/src/approval.rs`); this says beforehand what it will be. A command counts up to
 * its first shell metacharacter: approving `npm test && git push` for the run allows later commands that begin with
 * `npm test`, and never one that contains a metacharacter.
 */

import type { Schema } from "./schema";

/** The characters that chain, substitute or redirect commands in a shell. */
const SHELL_METACHARACTERS = /[;|&$()<>`\n]/;

export type FutureRule =
	| { readonly kind: "command"; readonly prefix: string }
	| { readonly kind: "path"; readonly path: string }
	/** Nothing says what a later call would have to share with this one. */
	| { readonly kind: "none" };

/** The command of a call, if it runs one. Some programs give it as a list of words. */
export function commandOf(args: unknown): string | null {
	const command = fieldOf(args, "command") ?? fieldOf(args, "cmd");
	if (typeof command === "string") return command;
	if (Array.isArray(command) && command.every((word) => typeof word === "string")) return command.join(" ");
	return null;
}

/** The file of a call, if it is about one. */
export function pathOf(args: unknown): string | null {
	for (const name of ["file_path", "path", "notebook_path"]) {
		const path = fieldOf(args, name);
		if (typeof path === "string") return path;
	}
	return null;
}

export function futureRule(args: unknown): FutureRule {
	const command = commandOf(args);
	if (command !== null) {
		const prefix = (command.split(SHELL_METACHARACTERS)[0] ?? "").trim();
		return prefix === "" ? { kind: "none" } : { kind: "command", prefix };
	}
	const path = pathOf(args);
	return path === null ? { kind: "none" } : { kind: "path", path };
}

/** Who a rule would be for. */
export type LastingScope = Exclude<Schema<"Scope">, "once">;

const LASTING_SCOPES: readonly LastingScope[] = ["node", "run"];

/** For which later calls a yes may hold too. A server of an older version does not say it. */
export function lastingScopes({ scopes }: Pick<Schema<"ApprovalOfRun">, "scopes">): readonly LastingScope[] {
	return scopes == null ? LASTING_SCOPES : LASTING_SCOPES.filter((scope) => scopes.includes(scope));
}

/** "Later calls of Bash by this agent whose command begins with `npm test` are approved without asking." */
export function ruleInWords(tool: string, args: unknown, scope: LastingScope): string {
	const who = scope === "node" ? "by this agent" : "by any agent of this run";
	const rule = futureRule(args);
	switch (rule.kind) {
		case "command":
			return `Later calls of ${tool} ${who} whose command begins with “${rule.prefix}” are approved without asking. A command with ; | & $ ( ) < > or a backtick still asks.`;
		case "path":
			return `Later calls of ${tool} ${who} on “${rule.path}” are approved without asking.`;
		case "none":
			return `No rule can be made from this call. The program may remember the answer for ${tool} itself, until its session ends.`;
	}
}

function fieldOf(args: unknown, name: string): unknown {
	return typeof args === "object" && args !== null ? (args as Record<string, unknown>)[name] : undefined;
}

/** The settings of an agent as a form has them, and what of them was changed. */

import type { RunNode } from "./run";
import type { Schema } from "./schema";

export interface AgentDraft {
	readonly label: string;
	readonly alias: string;
	readonly roleTemplate: string;
	/** `claude`, `codex`, `gemini`, or the name of a configured program. */
	readonly program: string;
	readonly wakeOn: Schema<"WakeOn">;
	readonly customSystemPrompt: string;
	readonly tokens: string;
	readonly costUsd: string;
	readonly rights: Readonly<Record<keyof Schema<"CapabilitiesView"> | "spawnRequiresApproval" | "asks", boolean>>;
}

export function draftOf(node: RunNode): AgentDraft {
	const { capabilities, permissions } = node;
	return {
		label: node.label,
		alias: node.alias ?? "",
		roleTemplate: node.roleTemplate,
		program: node.providerName ?? node.provider,
		wakeOn: node.wakeOn,
		customSystemPrompt: node.customSystemPrompt ?? "",
		tokens: textOf(node.budget?.tokens),
		costUsd: textOf(node.budget?.costUsd),
		rights: {
			writeCode: capabilities.writeCode,
			writeDocs: capabilities.writeDocs,
			runCommands: capabilities.runCommands,
			spawnNodes: capabilities.spawnNodes,
			delegateOnly: capabilities.delegateOnly,
			spawnRequiresApproval: permissions.spawnRequiresApproval,
			asks: permissions.cliPermissionsMode === "gated",
		},
	};
}

function textOf(value: number | null | undefined): string {
	return value == null ? "" : String(value);
}

export interface AgentChanges {
	readonly fields: Schema<"ChangeNode">;
	/** Why they cannot be saved. */
	readonly error: string | null;
}

const KNOWN_PROGRAMS = ["claude", "codex", "gemini"] as const;

/** The body of a request that changes a node from what it is to the draft. */
export function changesOf(node: RunNode, draft: AgentDraft): AgentChanges {
	const now = draftOf(node);
	const fields: Schema<"ChangeNode"> = {
		...(draft.label === now.label ? {} : { label: draft.label.trim() }),
		...(draft.alias === now.alias ? {} : { alias: draft.alias.trim() === "" ? null : draft.alias.trim() }),
		...(draft.roleTemplate === now.roleTemplate ? {} : { roleTemplate: draft.roleTemplate.trim() }),
		...(draft.program === now.program ? {} : programFields(draft.program)),
		...(draft.wakeOn === now.wakeOn ? {} : { wakeOn: draft.wakeOn }),
		...(draft.customSystemPrompt === now.customSystemPrompt
			? {}
			: { customSystemPrompt: draft.customSystemPrompt === "" ? null : draft.customSystemPrompt }),
		...(draft.tokens === now.tokens && draft.costUsd === now.costUsd ? {} : { budget: budgetOf(draft) }),
		...rightsChanged(now.rights, draft.rights),
	};
	return { fields, error: errorOf(draft) };
}

function programFields(program: string): Pick<Schema<"ChangeNode">, "provider" | "providerName"> {
	const known = KNOWN_PROGRAMS.find((name) => name === program);
	return known === undefined ? { provider: "custom", providerName: program } : { provider: known, providerName: null };
}

function budgetOf({ tokens, costUsd }: AgentDraft): Schema<"BudgetRequest"> {
	return {
		tokens: tokens.trim() === "" ? null : Number(tokens),
		costUsd: costUsd.trim() === "" ? null : Number(costUsd),
	};
}

function rightsChanged(now: AgentDraft["rights"], next: AgentDraft["rights"]): Schema<"ChangeNode"> {
	const { asks, spawnRequiresApproval } = next;
	const names = ["writeCode", "writeDocs", "runCommands", "spawnNodes", "delegateOnly"] as const;
	const capabilities = Object.fromEntries(
		names.flatMap((name) => (now[name] === next[name] ? [] : [[name, next[name]]])),
	);
	const permissions: Schema<"PermissionsRequest"> = {
		...(now.asks === asks ? {} : { cliPermissionsMode: asks ? "gated" : "skip" }),
		...(now.spawnRequiresApproval === spawnRequiresApproval ? {} : { spawnRequiresApproval }),
	};
	return {
		...(Object.keys(capabilities).length === 0 ? {} : { capabilities }),
		...(Object.keys(permissions).length === 0 ? {} : { permissions }),
	};
}

function errorOf({ label, roleTemplate, tokens, costUsd }: AgentDraft): string | null {
	if (label.trim() === "") return "An agent needs a name";
	if (roleTemplate.trim() === "") return "An agent needs a role";
	if (tokens.trim() !== "" && !/^[1-9][0-9]{0,14}$/.test(tokens.trim())) return "The tokens must be a whole number";
	if (costUsd.trim() !== "" && !(Number(costUsd) > 0)) return "The dollars must be a number above 0";
	return null;
}

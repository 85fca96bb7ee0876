/** An agent program in words, and the part of the configuration file that changes it. */

import type { Schema } from "../../model/schema";

export type Provider = Schema<"ProviderHealth">;

export const FEATURES: readonly (readonly [keyof Provider["features"], string])[] = [
	["approvals", "asks before it acts"],
	["editArgs", "takes edited calls"],
	["resume", "continues sessions"],
	["steer", "takes words during a turn"],
	["planMode", "plans without acting"],
	["mcp", "uses tools of Turnkeep"],
	["usage", "reports tokens"],
	["cost", "reports cost"],
];

export function featureWords(features: Provider["features"]): string {
	const words = FEATURES.filter(([name]) => features[name]).map(([, word]) => word);
	return words.length === 0 ? "only answers" : words.join(", ");
}

/** How a program of one's own speaks: a word of the configuration, and what it means. */
export const PROTOCOLS = [
	{ value: "raw", label: "raw: the prompt in, text out" },
	{ value: "jsonl", label: "jsonl: one JSON message a line" },
	{ value: "stream-json", label: "stream-json: as Claude Code prints" },
	{ value: "acp", label: "acp: the Agent Client Protocol" },
	{ value: "pty", label: "pty: a terminal program" },
] as const;
export type Protocol = (typeof PROTOCOLS)[number]["value"];

/** The part of the configuration file that adds or changes a program. */
export function programToml(program: {
	readonly name: string;
	readonly command: string;
	readonly protocol: Protocol | null;
}): string {
	const lines = [`[providers.${keyText(program.name)}]`, `command = ${JSON.stringify(program.command)}`];
	if (program.protocol !== null) lines.push(`protocol = "${program.protocol}"`);
	return [...lines, "args = []"].join("\n");
}

/** TOML takes letters, digits, - and _ as they are. */
function keyText(name: string): string {
	return /^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name);
}

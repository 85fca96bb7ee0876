/** The parts of a prompt, as `prompt.blocks.json` has them. */

export interface PromptBlock {
	readonly name: "system" | "role" | "mode" | "task";
	readonly title: string;
	readonly text: string;
	/** Whether this turn sent it. A delta has the mode and the task only. */
	readonly isSent: boolean;
}

export interface PromptBlocks {
	readonly kind: "full" | "delta";
	readonly blocks: readonly PromptBlock[];
	readonly sentHash: string | null;
	readonly fullHash: string | null;
}

const NAMES = ["system", "role", "mode", "task"] as const;

/** Reads the file; null if it is not what it should be. */
export function readPromptBlocks(text: string): PromptBlocks | null {
	const fields = fieldsOf(text);
	if (fields === null) return null;
	const kind = fields.kind === "delta" ? "delta" : "full";
	const isOverride = fields.override === true;
	const blocks = NAMES.flatMap((name): PromptBlock[] => {
		const block = fields[name];
		if (typeof block !== "string" || block === "") return [];
		const isSent = kind === "full" || name === "mode" || name === "task";
		return [{ name, title: titleOf(name, isOverride), text: block, isSent }];
	});
	return { kind, blocks, sentHash: hashOf(fields.sentHash), fullHash: hashOf(fields.fullHash) };
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> | null {
	try {
		const value: unknown = JSON.parse(text);
		return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
	} catch {
		return null;
	}
}

function hashOf(value: unknown): string | null {
	return typeof value === "string" ? value : null;
}

function titleOf(name: PromptBlock["name"], isOverride: boolean): string {
	switch (name) {
		case "system":
			return "Who you are";
		case "role":
			return isOverride ? "Role, in your own words" : "Role";
		case "mode":
			return "Mode";
		case "task":
			return "Task";
	}
}

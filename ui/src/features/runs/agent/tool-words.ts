/** A tool call in one line: what it acts on, in the words of its arguments. */

import { firstLine } from "../../../model/text-safety";

/** The arguments that say most, the best first. */
const TELLING = [
	"command",
	"cmd",
	"file_path",
	"path",
	"notebook_path",
	"pattern",
	"query",
	"url",
	"question",
	"label",
	"message",
	"summary",
	"description",
	"prompt",
];

export function toolSubject(args: unknown): string {
	if (typeof args === "string") return oneLine(args);
	if (typeof args !== "object" || args === null) return "";
	const fields = args as Readonly<Record<string, unknown>>;
	for (const name of TELLING) {
		const value = fields[name];
		if (typeof value === "string" && value.trim() !== "") return withReceiver(fields, oneLine(value));
		if (Array.isArray(value) && value.every((part) => typeof part === "string")) return firstLine(value.join(" "));
	}
	return firstLine(JSON.stringify(args), 100);
}

/** The first line, with a mark that there are more. */
function oneLine(text: string): string {
	return text.trim().includes("\n") ? `${firstLine(text)} …` : firstLine(text);
}

/** A handoff's message says less than its receiver. */
function withReceiver(fields: Readonly<Record<string, unknown>>, text: string): string {
	const { to } = fields;
	return typeof to === "string" && "message" in fields ? `to ${firstLine(to, 40)}: ${text}` : text;
}

/** The command line, if the call is one; it is shown as it will run. */
export function commandOf(args: unknown): string | null {
	if (typeof args !== "object" || args === null) return null;
	const { command, cmd } = args as { readonly command?: unknown; readonly cmd?: unknown };
	const line = command ?? cmd;
	if (typeof line === "string") return line;
	return Array.isArray(line) && line.every((part) => typeof part === "string") ? line.join(" ") : null;
}

/** What a call writes, if it writes a file. */
export function writtenFile(args: unknown): { readonly path: string; readonly content: string } | null {
	if (typeof args !== "object" || args === null) return null;
	const { file_path: path, content } = args as { readonly file_path?: unknown; readonly content?: unknown };
	return typeof path === "string" && typeof content === "string" ? { path, content } : null;
}

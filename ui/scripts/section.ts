/** The part of a document that a script writes: between `<!-- NAME -->` and `<!-- /NAME -->`. */

import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

export function writeSection(path: string, name: string, text: string): void {
	// npm goes to the folder of its package first; the path is meant from where npm was called.
	const file = resolve(process.env.INIT_CWD ?? ".", path);
	writeFileSync(file, replaceSection(readFileSync(file, "utf8"), name, text));
}

export function replaceSection(document: string, name: string, text: string): string {
	const [begin, end] = [`<!-- ${name} -->\n`, `<!-- /${name} -->\n`];
	const [from, to] = [document.indexOf(begin), document.indexOf(end)];
	if (from < 0 || to < from) throw new Error(`the document lacks the marks of ${name}`);
	return `${document.slice(0, from + begin.length)}${text}${document.slice(to)}`;
}

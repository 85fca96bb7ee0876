/**
 * What `GET /v1/demo` says about a demo: the things that the tour points at.
 *
 * The answer is read with bounds and never trusted: an answer in which anything is missing or malformed is no demo, and
 * fields that the tour does not use are not looked at.
 */

import { parseRef } from "./refs";

/** The things of a demo, by their ids. */
export interface TourDemo {
	readonly run: string;
	/** The agent that waits for an approval. */
	readonly approvalNode: string;
	/** The agent that stalled. */
	readonly stalledNode: string;
	/** A file that an agent changed, as the diffs name it. */
	readonly file: string;
	/** The number of a changed line of the file. */
	readonly line: number;
	readonly world: string;
	/** Two people of the ledger who do not see the same. */
	readonly persons: readonly [string, string];
	/** A history that can be forked. */
	readonly context: string;
}

/** Longer answers are not read. */
export const DEMO_CHARS_MAX = 64 << 10;
const PATH_CHARS_MAX = 1 << 10;
const LINE_MAX = 1_000_000;

/** Reads the body of the answer; null if it does not describe a demo. */
export function readTourDemo(body: string): TourDemo | null {
	const fields = readFields(body);
	if (fields === null) return null;
	const text = (name: string) => (typeof fields[name] === "string" ? fields[name] : "");
	const [first, second] = readPersons(fields.persons);
	const demo: TourDemo = {
		run: text("run"),
		approvalNode: text("approval_node"),
		stalledNode: text("node_stalled"),
		file: text("file"),
		line: typeof fields.line === "number" ? fields.line : 0,
		world: text("world"),
		persons: [first, second],
		context: text("context"),
	};
	return isWhole(demo) ? demo : null;
}

function readFields(body: string): Readonly<Record<string, unknown>> | null {
	if (body.length > DEMO_CHARS_MAX) return null;
	try {
		const value: unknown = JSON.parse(body);
		return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
	} catch {
		return null;
	}
}

function readPersons(value: unknown): [string, string] {
	const [first, second]: unknown[] = Array.isArray(value) ? value : [];
	return [typeof first === "string" ? first : "", typeof second === "string" ? second : ""];
}

/** Whether everything has the form of what it names. The rules are those of refs. */
function isWhole({ run, approvalNode, stalledNode, file, line, world, persons, context }: TourDemo): boolean {
	const refs = [
		`run:${run}`,
		`node:${approvalNode}`,
		`node:${stalledNode}`,
		`world:${world}`,
		`ctx:${context}`,
		...persons.map((person) => `person:${world}/${person}`),
	];
	const isPath = file !== "" && file.length <= PATH_CHARS_MAX;
	const isLine = Number.isSafeInteger(line) && line >= 1 && line <= LINE_MAX;
	return refs.every((ref) => parseRef(ref) !== null) && persons[0] !== persons[1] && isPath && isLine;
}

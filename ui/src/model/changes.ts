/**
 * What a run has changed and not yet brought into its directory: each agent's part, files that several changed, and
 * whether the last verification was of the work as it is now.
 *
 * The server has no route for the tree that it would make, so this is told from the records of turns, verifications and
 * applies. It does not see what somebody changed in the directory meanwhile; the server does, when it applies.
 */

import type { Artifact, RunNode } from "./run";
import { inCreationOrder } from "./run-words";

/** The part of one agent. */
export interface Contribution {
	readonly node: RunNode;
	/** `worktree`: waits to be applied. `shared`: is in the directory already. */
	readonly place: "worktree" | "shared";
	/** Diffs with changes that no apply has landed, oldest first. */
	readonly diffs: readonly Artifact[];
	readonly files: readonly string[];
	readonly added: number;
	readonly removed: number;
}

/** A file that agents in different places changed. */
export interface Overlap {
	readonly path: string;
	readonly nodes: readonly RunNode[];
}

export interface RunChanges {
	readonly contributions: readonly Contribution[];
	/** The files of worktrees, each once. */
	readonly waiting: readonly string[];
	readonly overlaps: readonly Overlap[];
	/** The newest report of a verification. */
	readonly report: Artifact | null;
	/** Turns that changed files after the newest report; whose tree it was is then past. */
	readonly changedSince: number;
	/** The answers of applies, oldest first. */
	readonly applies: readonly Artifact[];
}

export interface ChangedRun {
	readonly nodes: Readonly<Record<string, RunNode>>;
	readonly artifacts: Readonly<Record<string, Artifact>>;
}

export function runChanges({ nodes, artifacts }: ChangedRun): RunChanges {
	const all = Object.values(artifacts).toSorted(
		(one, other) => Date.parse(one.createdAt) - Date.parse(other.createdAt),
	);
	const applies = all.filter(({ kind, name }) => kind === "report" && name === "apply.json");
	const report = all.findLast(({ kind, name }) => kind === "report" && name === "verification.json") ?? null;
	const lastApply = applies.at(-1)?.createdAt ?? null;
	const changing = all.filter(({ kind, metadata }) => kind === "diff" && (metadata?.filesChanged.length ?? 0) > 0);
	const contributions = inCreationOrder(nodes).flatMap((node): Contribution[] => {
		const place = node.workspace?.kind ?? "shared";
		const isWaiting = (diff: Artifact) => place === "shared" || lastApply === null || isAfter(diff, lastApply);
		const diffs = changing.filter((diff) => diff.nodeId === node.id && isWaiting(diff));
		return diffs.length === 0 ? [] : [contributionOf(node, place, diffs)];
	});
	const inWorktrees = contributions.filter(({ place }) => place === "worktree");
	return {
		contributions,
		waiting: [...new Set(inWorktrees.flatMap(({ files }) => files))].toSorted(),
		overlaps: overlapsOf(contributions),
		report,
		changedSince: report === null ? 0 : changing.filter((diff) => isAfter(diff, report.createdAt)).length,
		applies,
	};
}

function isAfter({ createdAt }: Artifact, time: string): boolean {
	return Date.parse(createdAt) > Date.parse(time);
}

function contributionOf(node: RunNode, place: Contribution["place"], diffs: readonly Artifact[]): Contribution {
	const sum = (count: (diff: Artifact) => number) => diffs.reduce((total, diff) => total + count(diff), 0);
	return {
		node,
		place,
		diffs,
		files: [...new Set(diffs.flatMap(({ metadata }) => metadata?.filesChanged ?? []))].toSorted(),
		added: sum(({ metadata }) => metadata?.added ?? 0),
		removed: sum(({ metadata }) => metadata?.removed ?? 0),
	};
}

/** Agents that share a directory see each other's files, so only different places can disagree. */
function overlapsOf(contributions: readonly Contribution[]): Overlap[] {
	const byPath = new Map<string, Contribution[]>();
	for (const contribution of contributions) {
		for (const path of contribution.files) byPath.set(path, [...(byPath.get(path) ?? []), contribution]);
	}
	return [...byPath]
		.toSorted(([one], [other]) => (one < other ? -1 : 1))
		.flatMap(([path, parts]): Overlap[] => {
			const isDisputed = parts.length > 1 && parts.some(({ place }) => place === "worktree");
			return isDisputed ? [{ path, nodes: parts.map(({ node }) => node) }] : [];
		});
}

/** A verification's report, `verification.json`. */
export interface VerificationReport {
	readonly ok: boolean;
	/** `node`: a check of one agent's work, for a gate. */
	readonly scope: "run" | "node";
	readonly tree: string | null;
	readonly commands: readonly VerifiedCommand[];
	/** Why no command ran, such as a conflict. */
	readonly reason: string | null;
}

export interface VerifiedCommand {
	readonly command: string;
	readonly exitCode: number | null;
	readonly output: string;
}

/** Reads a report; null if it is none. */
export function readReport(text: string): VerificationReport | null {
	const fields = objectOf(text);
	if (fields === null || typeof fields.ok !== "boolean") return null;
	const commands = Array.isArray(fields.commands) ? fields.commands : [];
	return {
		ok: fields.ok,
		scope: fields.scope === "node" ? "node" : "run",
		tree: typeof fields.tree === "string" ? fields.tree : null,
		commands: commands.flatMap(readCommand),
		reason: typeof fields.reason === "string" ? fields.reason : null,
	};
}

function readCommand(value: unknown): VerifiedCommand[] {
	if (typeof value !== "object" || value === null) return [];
	const { command, exitCode, output } = value as Readonly<Record<string, unknown>>;
	if (typeof command !== "string") return [];
	return [
		{
			command,
			exitCode: typeof exitCode === "number" ? exitCode : null,
			output: typeof output === "string" ? output : "",
		},
	];
}

/** The answer of an apply, `apply.json`. */
export interface AppliedReport {
	readonly applied: readonly string[];
	readonly tree: string;
	readonly verified: boolean;
}

export function readApplied(text: string): AppliedReport | null {
	const fields = objectOf(text);
	if (fields === null || !Array.isArray(fields.applied) || typeof fields.tree !== "string") return null;
	const applied = fields.applied.filter((path): path is string => typeof path === "string");
	return { applied, tree: fields.tree, verified: fields.verified === true };
}

function objectOf(text: string): Readonly<Record<string, unknown>> | null {
	try {
		const value: unknown = JSON.parse(text);
		return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
	} catch {
		return null;
	}
}

const SUBJECT_CHARS_MAX = 72;

/** A commit message for what was applied: the goal's first line, what each agent did, and the run's name. */
export function commitMessage(
	run: { readonly id: string; readonly title: string; readonly goal?: string | null },
	parts: readonly { readonly label: string; readonly summary: string }[],
	files: readonly string[],
): string {
	const [subject = run.title] = (run.goal ?? run.title).trim().split("\n");
	const cut = subject.length > SUBJECT_CHARS_MAX ? `${subject.slice(0, SUBJECT_CHARS_MAX - 1)}…` : subject;
	const lines = parts.map(({ label, summary }) => `- ${label}: ${summary.split("\n", 1)[0] ?? ""}`);
	const count = files.length === 1 ? "1 file" : `${files.length} files`;
	return `${[cut, lines.join("\n"), `${count} by run ${run.id.slice(0, 8)}.`].filter((part) => part !== "").join("\n\n")}\n`;
}

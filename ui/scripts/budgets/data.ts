/**
 * What is measured: a large run, agents that stream, and a long history, all made by a real server.
 *
 * The agents are the scripted agent. A text of theirs is made of numbered words (`n000017`), so that what is on screen
 * says which event it is of.
 */

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ContextId, connect, contextId as contextIdOf, encodeTagged } from "../../../clients/ts/src/node/index.ts";
import { until } from "../../test/e2e/agent-runs.ts";
import type { Harness } from "../../test/e2e/harness.ts";

export interface Sizes {
	readonly nodes: number;
	readonly edges: number;
	readonly events: number;
	readonly turns: number;
	readonly streams: number;
	/** Words that an agent says in one turn while it streams. */
	readonly words: number;
}

export interface Run {
	readonly id: string;
	readonly nodes: readonly string[];
}

/** The name of the scripted agent in the configuration. */
const PROGRAM = "bench";
/** The words of a stream come one by one, fifty a second. */
export const WORDS_PER_SECOND = 50;
const WORDS_PER_PARAGRAPH = 100;
/** So many agents of the large run work at once; the others only lengthen it. */
const WORKERS_MAX = 10;
const TOOLS_PER_TURN = 200;
const LARGE_RUN_MS_MAX = 20 * 60_000;
const TURNS_AT_ONCE = 500;
const FORKS = 20;

/** The configuration of a server whose agents play the script; the folder gets the script and the link to the program. */
export function budgetConfig(folder: string, binary: string, sizes: Sizes): string {
	mkdirSync(folder, { recursive: true });
	const link = join(folder, "turnkeep-agent-script");
	symlinkSync(binary, link);
	const script = join(folder, "script.toml");
	writeFileSync(script, agentScript(sizes));
	return `[runs]
open_turns_max = 64
turns_per_run_max = 64
nodes_max = 128
stall_after = 0

[providers.${PROGRAM}]
command = ${JSON.stringify(link)}
args = ["--script", ${JSON.stringify(script)}, "--protocol", "jsonl"]
protocol = "jsonl"
`;
}

function agentScript({ words }: Sizes): string {
	const tool = '    { tool = "command", args = { cmd = "make test" }, result = "14 passed" },\n';
	const said = `    { think = "The tests say what is left to do." },\n    { say = "I looked at the result and go on with the next file." },\n    "end_message",\n`;
	const pause = 1000 / WORDS_PER_SECOND;
	return `[[turn]]
when = "Ask me"
repeat = true
steps = [{ run = "true", ask = "Run the tests?" }, { say = "Done." }]

[[turn]]
when = "Stream"
repeat = true
steps = [{ say = ${JSON.stringify(numberedWords(words))}, chunk = 8, pause = ${pause} }]

[[turn]]
repeat = true
steps = [
${`${said}${tool.repeat(10)}`.repeat(TOOLS_PER_TURN / 10)}]
`;
}

function numberedWords(count: number): string {
	const words = Array.from({ length: count }, (_, at) => `n${String(at).padStart(6, "0")}`);
	const paragraphs = [];
	for (let at = 0; at < count; at += WORDS_PER_PARAGRAPH) {
		paragraphs.push(words.slice(at, at + WORDS_PER_PARAGRAPH).join(" "));
	}
	return paragraphs.join("\n");
}

export async function makeRun({ api, workDir }: Harness, goal: string, nodes: number): Promise<Run> {
	const { run } = await api<{ run: { id: string } }>("/api/runs", { body: { cwd: workDir, goal } });
	const ids: string[] = [];
	const columns = Math.ceil(Math.sqrt(nodes));
	for (let number = 0; number < nodes; number += 1) {
		const body = {
			label: `Agent ${number + 1}`,
			alias: `a${number + 1}`,
			roleTemplate: "implementer",
			provider: "custom",
			providerName: PROGRAM,
			permissions: { cliPermissionsMode: nodes === 1 ? "gated" : "skip" },
			position: { x: (number % columns) * 320, y: Math.floor(number / columns) * 180 },
		};
		ids.push((await api<{ node: { id: string } }>(`/api/runs/${run.id}/nodes`, { body })).node.id);
	}
	return { id: run.id, nodes: ids };
}

/** A run in which one agent waits for an approval. */
export async function makeWaitingRun(harness: Harness): Promise<void> {
	const run = await makeRun(harness, "Fix the tests", 1);
	await say(harness, run.id, run.nodes[0] ?? "", "Ask me before you run anything.");
	const waits = async () => {
		const { items } = await harness.api<{ items: readonly { kind: string }[] }>("/api/attention");
		return items.some(({ kind }) => kind === "approval");
	};
	await until(waits, "an approval", 60_000);
}

/** A run with all its agents, edges and events. */
export async function makeLargeRun(harness: Harness, sizes: Sizes): Promise<Run> {
	const run = await makeRun(harness, "Show what a large run costs", sizes.nodes);
	for (let edge = 0; edge < sizes.edges; edge += 1) {
		const distance = 1 + Math.floor(edge / sizes.nodes);
		const from = run.nodes[edge % sizes.nodes];
		const to = run.nodes[(edge + distance) % sizes.nodes];
		await harness.api(`/api/runs/${run.id}/edges`, { body: { from, to, type: "handoff" } });
	}
	const workers = run.nodes.slice(0, WORKERS_MAX);
	const isLarge = async () => {
		const { lastSeq, nodes } = await readRun(harness, run.id);
		const idle = workers.filter((id) => nodes[id]?.status === "idle");
		if (lastSeq >= sizes.events) return idle.length === workers.length;
		await Promise.all(idle.map((id) => say(harness, run.id, id, "Go on")));
		return false;
	};
	await until(isLarge, `a run of ${sizes.events} events`, LARGE_RUN_MS_MAX);
	return run;
}

interface RunAnswer {
	readonly run: {
		readonly lastSeq: number;
		readonly nodes: Readonly<Record<string, { readonly status: string }>>;
	};
}

export async function readRun({ api }: Harness, id: string): Promise<RunAnswer["run"]> {
	return (await api<RunAnswer>(`/api/runs/${id}`)).run;
}

export async function say({ api }: Harness, run: string, node: string, content: string): Promise<void> {
	await api(`/api/runs/${run}/chat`, { body: { content, nodeId: node } });
}

/** Gives every agent that rests another turn to stream. */
export async function keepStreaming(harness: Harness, run: Run): Promise<void> {
	const { nodes } = await readRun(harness, run.id);
	const idle = run.nodes.filter((id) => nodes[id]?.status === "idle");
	await Promise.all(idle.map((id) => say(harness, run.id, id, "Stream")));
}

const NOTE_TYPE = {
	registry_version: 1,
	bundle_id: "notes#1",
	types: { "turnkeep.Note": { versions: { "1": { fields: { "1": { name: "text", type: "string" } } } } } },
	enums: {},
};

/** A history with so many turns, of which a fifth are on forks. Resolves to its id. */
export async function makeLongHistory(harness: Harness, turns: number): Promise<string> {
	await harness.cli(["registry", "put", "-"], JSON.stringify(NOTE_TYPE));
	const client = await connect(harness.binaryAddress, { token: harness.token });
	const append = async (contextId: ContextId, count: number) => {
		for (let sent = 0; sent < count; sent += TURNS_AT_ONCE) {
			const batch = Array.from({ length: Math.min(TURNS_AT_ONCE, count - sent) }, (_, at) => ({
				type: { id: "turnkeep.Note", version: 1 },
				payload: encodeTagged({ 1: `Turn number ${sent + at} of history ${contextId}.` }),
			}));
			await client.appendBatch({ contextId, turns: batch, key: `${contextId} ${sent}` });
		}
	};
	const { contextId } = await client.createContext();
	const onForks = Math.floor(turns / 5 / FORKS);
	await append(contextId, turns - onForks * FORKS);
	const path = `/v1/contexts/${contextId}/turns?limit=${turns}&view=raw`;
	const { turns: made } = await harness.api<{ turns: readonly { turn_id: string }[] }>(path);
	for (let fork = 0; fork < FORKS; fork += 1) {
		const base = made[Math.floor((made.length / FORKS) * fork)]?.turn_id;
		const { context_id } = await harness.api<{ context_id: string }>("/v1/contexts/fork", {
			body: { base_turn_id: base },
		});
		await append(contextIdOf(context_id), onForks);
	}
	client.close();
	return String(contextId);
}

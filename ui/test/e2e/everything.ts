/** A server that holds something of every kind, and every screen of the UI with the path that shows it. */

import { rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { agentPath, edgeTo, firstTurn, makeConflictRun, makeShopRun } from "./agent-runs.ts";
import type { Harness } from "./harness.ts";
import { wrapSharedShell } from "./terminals.ts";

/** The name of a screen, and a path that shows it. */
export type Screens = Readonly<Record<string, string>>;

const SYSTEM_PAGES = ["health", "providers", "roles", "teams", "types", "tokens", "settings", "audit", "about"];
const systemScreens: Screens = Object.fromEntries(SYSTEM_PAGES.map((page) => [`system ${page}`, `/system/${page}`]));

/** Every screen that a new server has, with nothing in it. */
export const EMPTY_SCREENS: Screens = {
	inbox: "/",
	"inbox approvals": "/?kind=approval",
	runs: "/runs",
	"new run": "/runs/new",
	sessions: "/sessions",
	ledgers: "/ledgers",
	ledger: "/ledgers/default",
	"ledger search": "/ledgers/default/search?q=x",
	people: "/ledgers/default/people",
	person: "/ledgers/default/people/NOBODY",
	histories: "/history",
	compare: "/history/compare",
	...systemScreens,
	"sign-in": "/signin",
};

/** What it holds. */
export interface Everything {
	readonly screens: Screens;
	/** Ends the programs that were started for it. */
	end(): void;
}

const NOTE_VERSIONS = [
	{ "1": { name: "text", type: "string" } },
	{ "1": { name: "text", type: "string" }, "2": { name: "role", type: "string", optional: true } },
	{
		"1": { name: "words", type: "string" },
		"2": { name: "role", type: "string", optional: true },
		"3": { name: "kind", type: "u8", enum: "turnkeep.NoteKind", optional: true },
	},
];

/** Bundles with one more version of a type each. */
export const noteBundles = () =>
	NOTE_VERSIONS.map((_, newest) => ({
		registry_version: 1,
		bundle_id: `notes#${newest + 1}`,
		types: {
			"turnkeep.Note": {
				versions: Object.fromEntries(
					NOTE_VERSIONS.slice(0, newest + 1).map((fields, at) => [String(at + 1), { fields }]),
				),
			},
		},
		enums: newest < 2 ? {} : { "turnkeep.NoteKind": { "1": "remark", "2": "question" } },
	}));

/** Makes it; `harness` must have the agents of `scriptedConfig`. */
export async function makeEverything(harness: Harness): Promise<Everything> {
	const { api } = harness;
	const [runs, sessions, ledgers, history] = await Promise.all([
		makeRuns(harness),
		makeSession(harness),
		makeLedger(harness),
		makeHistory(harness),
	]);
	const screens = {
		inbox: "/",
		...runs,
		...sessions.screens,
		...ledgers,
		...history,
		...systemScreens,
		"system audit": "/system/audit?ledger=payments",
		"system role": "/system/roles?name=implementer",
		"system team": "/system/teams?name=team",
		"system new token": "/system/tokens?new=1",
		"system type": "/system/types?id=turnkeep.Note",
		"system provider": "/system/providers?name=claude",
		"sign-in": "/signin",
	};
	await api("/v1/worlds/payments/tokens", { body: { person_id: "CODER", write: true } });
	return { screens, end: sessions.end };
}

async function makeRuns({ api, workDir }: Harness): Promise<Screens> {
	const [shop, notes] = await Promise.all([
		makeShopRun(api, join(workDir, "shop")),
		makeConflictRun(api, join(workDir, "notes")),
	]);
	const tabs = ["timeline", "diffs", "prompt", "handoffs", "artifacts", "log", "settings"];
	const turn = `/runs/${shop.id}/turns/${await firstTurn(api, shop, "printer")}`;
	return {
		runs: "/runs",
		"new run": `/runs/new?folder=${encodeURIComponent(workDir)}&team=team`,
		run: `/runs/${shop.id}?view=graph`,
		"run list": `/runs/${shop.id}?view=list`,
		"run agent": `/runs/${notes.id}?agent=${notes.nodes.tess}`,
		...Object.fromEntries(tabs.map((tab) => [`agent ${tab}`, agentPath(shop, "printer", tab)])),
		"agent approval": agentPath(notes, "tess"),
		"agent turn": turn,
		"agent turn prompt": `${turn}?show=prompt`,
		"agent turn changes": `${turn}?show=changes`,
		edge: `/runs/${shop.id}/edges/${await edgeTo(api, shop, "parser")}`,
		changes: `/runs/${shop.id}/changes`,
		"changes conflict": `/runs/${notes.id}/changes`,
		why: `/runs/${notes.id}/why`,
		replay: `/runs/${shop.id}/replay?seq=20`,
		"go to a ref": `/go/${encodeURIComponent(`node:${shop.nodes.parser}`)}`,
	};
}

async function makeSession(harness: Harness): Promise<{ readonly screens: Screens; readonly end: () => void }> {
	const shell = await wrapSharedShell(harness, "review");
	const screens = {
		sessions: "/sessions",
		session: "/sessions/review",
		terminal: "/sessions/review?view=terminal",
		"captured turn": "/sessions/review/turns/1",
	};
	return { screens, end: () => void shell.kill("SIGTERM") };
}

/** A ledger with three people, an entry for all, one for two of them, and an appointment. */
async function makeLedger({ api }: Harness): Promise<Screens> {
	const persons = [
		{ person_id: "PLANNER", display_label: "Planner" },
		{ person_id: "CODER" },
		{ person_id: "REVIEWER", display_label: "Reviewer" },
	];
	await api("/v1/worlds", { body: { world_id: "payments", profile: "WORKSPACE", persons } });
	const request_id = "everything-1";
	const entry = (text: string, visibility: object) => ({
		request_id,
		author: { author_id: "PLANNER", author_class: "PERSON" },
		visibility,
		channel: "PEOPLE",
		text,
	});
	const envelope = {
		request_id,
		invoker: { invoker_id: "test", invoker_role: "INVOKER" },
		operator: { operator_id: "GEORGE", input_text: "" },
		mode: { kind: "BEAT" },
	};
	const bundle = {
		request_id,
		proposed_by: { engine: "test", actor: "PLANNER" },
		wrote: true,
		entries: [
			entry("CODER takes the rounding test; REVIEWER checks by 15:00.", { scope: "PUBLIC" }),
			entry("Look twice at the ledger migration.", { scope: "PRIVATE", visible_to: ["REVIEWER"] }),
		],
		pocket_items: [{ kind: "CALENDAR", entry_index: 0, title: [31, 46], time: "2031-11-18T15:00:00Z" }],
	};
	const answer = await api<{ bundle: { entries: { entry_id: string }[] } }>("/v1/worlds/payments/beats?as=PLANNER", {
		body: { envelope, bundle },
	});
	const [plan = "", secret = ""] = answer.bundle.entries.map(({ entry_id }) => entry_id);
	const ledger = "/ledgers/payments";
	return {
		ledgers: "/ledgers",
		ledger,
		"ledger as a person": `${ledger}?as=REVIEWER`,
		"ledger audit": `${ledger}?audit=1`,
		"ledger search": `${ledger}/search?q=migration&as=REVIEWER`,
		entry: `${ledger}/entries/${plan}`,
		"entry audit": `${ledger}/entries/${secret}?audit=1`,
		people: `${ledger}/people`,
		person: `${ledger}/people/REVIEWER`,
		"person knew": `${ledger}/people/REVIEWER?tab=knew`,
		"person compared": `${ledger}/people/REVIEWER?tab=compare&vs=CODER`,
		"person access": `${ledger}/people/CODER?tab=access`,
	};
}

/** A history with turns of three versions and a turn that cannot be read, and a fork of it. */
async function makeHistory({ api, cli, workDir }: Harness): Promise<Screens> {
	for (const bundle of noteBundles()) await cli(["registry", "put", "-"], JSON.stringify(bundle));
	interface Context {
		readonly context_id: string;
	}
	const { context_id: main } = await api<Context>("/v1/contexts", { body: { labels: { agent: "planner" } } });
	const append = async (context: string, type_version: number, body: object) => {
		const path = `/v1/contexts/${context}/append`;
		const turn = { type_id: "turnkeep.Note", type_version, ...body };
		return (await api<{ turn_id: string }>(path, { body: turn })).turn_id;
	};
	const first = await append(main, 1, { data: { text: "The first words." } });
	const second = await append(main, 2, { data: { text: "A role was added.", role: "planner" } });
	await append(main, 3, { data: { words: "Is this all?", kind: "question" } });
	const broken = await append(main, 1, { payload_b64: Buffer.from([255, 255, 1]).toString("base64") });
	const forking = { base_turn_id: second, labels: { try: "again" } };
	const { context_id: fork } = await api<Context>("/v1/contexts/fork", { body: forking });
	await append(fork, 2, { data: { text: "Another way." } });
	const file = join(workDir, "answer.json");
	await writeFile(file, '{"answer": 42, "why": ["because", "so"]}');
	const hash = /[0-9a-f]{64}/.exec(await cli(["blob", "put", file]))?.[0] ?? "";
	rmSync(file);
	return {
		histories: "/history",
		history: `/history/${main}`,
		turn: `/history/${main}/turns/${first}?view=both`,
		"turn that cannot be read": `/history/${main}/turns/${broken}`,
		compare: `/history/compare?a=${main}&b=${fork}`,
		blob: `/blobs/${hash}`,
	};
}

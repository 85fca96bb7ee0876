/** Runs with scripted agents, made over HTTP: a team whose work is verified, one whose work conflicts, a hostile agent. */

import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface MadeRun {
	readonly id: string;
	/** The id of each agent by its alias. */
	readonly nodes: Readonly<Record<string, string>>;
	readonly cwd: string;
}

type Api = <T>(path: string, init?: { readonly method?: string; readonly body?: unknown }) => Promise<T>;

/** The configuration of a server whose program `claude` plays the script; `dir` gets the script and the link. */
export function scriptedConfig(dir: string, binary: string): string {
	const link = join(dir, "turnkeep-agent-script");
	symlinkSync(binary, link);
	const script = join(dir, "script.toml");
	writeFileSync(script, SCRIPT);
	return `[providers.claude]\ncommand = ${JSON.stringify(link)}\nargs = ["--script", ${JSON.stringify(script)}]\n`;
}

/** A repository with a commit. */
export function makeRepository(dir: string, files: Readonly<Record<string, string>>): void {
	mkdirSync(dir, { recursive: true });
	for (const [path, content] of Object.entries(files)) {
		mkdirSync(join(dir, path, ".."), { recursive: true });
		writeFileSync(join(dir, path), content);
	}
	const git = (...args: string[]) =>
		execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=t@t", ...args], { cwd: dir });
	git("init", "-q", "-b", "main");
	git("add", "-A");
	git("commit", "-q", "-m", "Begin");
}

export function agentPath(run: MadeRun, alias: string, tab = "timeline"): string {
	return `/runs/${run.id}/agents/${run.nodes[alias]}/${tab}`;
}

/** The id of an agent's first turn. */
export async function firstTurn(api: Api, run: MadeRun, alias: string): Promise<string> {
	const query = `types=turn.status&nodeId=${run.nodes[alias]}`;
	const { events } = await api<{ events: { turnId: string }[] }>(`/api/runs/${run.id}/events?${query}`);
	return events[0]?.turnId ?? "";
}

/** The id of the connection that leads to an agent. */
export async function edgeTo(api: Api, run: MadeRun, alias: string): Promise<string> {
	const { run: view } = await api<{ run: { edges: Record<string, { to: string }> } }>(`/api/runs/${run.id}`);
	const found = Object.entries(view.edges).find(([, { to }]) => to === run.nodes[alias]);
	return found?.[0] ?? "";
}

interface NewNode {
	readonly alias: string;
	readonly label: string;
	readonly roleTemplate: string;
	readonly wakeOn?: "any" | "all";
}

async function makeRun(api: Api, run: Record<string, unknown>, nodes: readonly NewNode[]): Promise<MadeRun> {
	const { run: made } = await api<{ run: { id: string } }>("/api/runs", { body: run });
	const ids: Record<string, string> = {};
	for (const node of nodes) {
		const body = { provider: "claude", ...node };
		ids[node.alias] = (await api<{ node: { id: string } }>(`/api/runs/${made.id}/nodes`, { body })).node.id;
	}
	return { id: made.id, nodes: ids, cwd: String(run.cwd) };
}

/** Waits until a condition about the run holds. */
export async function until<T>(ask: () => Promise<T | undefined | false>, what: string, msMax = 20_000): Promise<T> {
	for (const end = Date.now() + msMax; ; ) {
		const found = await ask();
		if (found !== undefined && found !== false) return found;
		if (Date.now() > end) throw new Error(`${what} did not happen within ${msMax} ms`);
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

interface RunAnswer {
	readonly run: {
		readonly status: string;
		readonly nodes: Readonly<
			Record<string, { readonly status: string; readonly alias?: string; readonly inboxCount: number }>
		>;
	};
}

/** Waits until every agent rests, or the run is over. */
export function untilRest(api: Api, run: MadeRun): Promise<unknown> {
	let rests = 0;
	return until(async () => {
		const { run: now } = await api<RunAnswer>(`/api/runs/${run.id}`);
		const isResting = Object.values(now.nodes).every((node) => node.status !== "running" && node.inboxCount === 0);
		// A handoff wakes its receiver a moment after the sender has come to rest.
		rests = isResting ? rests + 1 : 0;
		return now.status === "completed" || rests > 12;
	}, "rest");
}

interface OpenApproval {
	readonly runId: string;
	readonly approval: { readonly approvalId: string; readonly context: string };
}

/** Waits for an approval of the run. */
export function untilApproval(api: Api, run: MadeRun): Promise<OpenApproval> {
	return until(async () => {
		const { approvals } = await api<{ approvals: OpenApproval[] }>(`/api/approvals?runId=${run.id}`);
		return approvals[0];
	}, "an approval");
}

/** A lead, a parser and a printer. The first claim of completion fails its verification, the second passes. */
export async function makeShopRun(api: Api, cwd: string): Promise<MadeRun> {
	makeRepository(cwd, {
		"README.md": "# Shop\n\nA small shop.\n",
		"src/main.py": "import parser\n\nprint(parser.parse('1'))\n",
		"old.txt": "not needed any more\n",
		"check.sh":
			"grep -q newline src/printer.py || { echo 'FAILED test_printer: the last line has no newline'; exit 1; }\necho 2 passed\n",
	});
	const run = await makeRun(
		api,
		{ cwd, goal: "Read and print orders\nThe shop needs a parser and a printer.", verify: ["sh check.sh"] },
		[
			// Its script knows both reports together. On a busy machine one may come long after the other.
			{ alias: "lead", label: "Lead", roleTemplate: "orchestrator", wakeOn: "all" },
			{ alias: "parser", label: "Parser", roleTemplate: "implementer" },
			{ alias: "printer", label: "Printer", roleTemplate: "implementer" },
		],
	);
	for (const to of ["parser", "printer"]) await api(`/api/runs/${run.id}/edges`, { body: { from: "lead", to } });
	await api(`/api/runs/${run.id}/chat`, { body: { content: "Please split the work in two.", nodeId: "lead" } });
	const { approval } = await untilApproval(api, run);
	await api(`/api/approvals/${approval.approvalId}/resolve`, { body: { status: "approved", scope: "once" } });
	await until(async () => (await api<RunAnswer>(`/api/runs/${run.id}`)).run.status === "completed", "completion");
	return run;
}

/** Two writers change the same line, so their work does not fit together. The third one waits for an approval. */
export async function makeConflictRun(api: Api, cwd: string): Promise<MadeRun> {
	makeRepository(cwd, { "notes.md": "# Notes\n\nNothing yet.\n" });
	const run = await makeRun(api, { cwd, goal: "Write the notes", verify: ["test -s notes.md"] }, [
		{ alias: "ada", label: "First writer", roleTemplate: "implementer" },
		{ alias: "bob", label: "Second writer", roleTemplate: "implementer" },
		{ alias: "tess", label: "Tester", roleTemplate: "tester" },
	]);
	await api(`/api/runs/${run.id}/edges`, { body: { from: "ada", to: "tess", label: "review" } });
	await api(`/api/runs/${run.id}/chat`, { body: { content: "Write the first draft.", nodeId: "ada" } });
	await untilRest(api, run);
	await api(`/api/runs/${run.id}/chat`, { body: { content: "Write another draft.", nodeId: "bob" } });
	await untilRest(api, run);
	await api(`/api/runs/${run.id}/chat`, { body: { content: "Try to break it.", nodeId: "tess" } });
	await untilApproval(api, run);
	return run;
}

/** What a hostile agent says; nothing of it may be obeyed. */
export const HOSTILE = {
	label: "Evil <img src=x onerror=alert(1)> \u202egnp.exe",
	file: "a <b> \u202etxt.js",
} as const;

/** An agent that prints HTML, scripts, terminal escapes, bidi controls and a line of a megabyte. */
export async function makeHostileRun(api: Api, cwd: string): Promise<MadeRun> {
	makeRepository(cwd, { "a.txt": "a\n" });
	const run = await makeRun(api, { cwd, goal: "<script>document.title='owned'</script> \u202eevil" }, [
		{ alias: "evil", label: HOSTILE.label, roleTemplate: "implementer" },
	]);
	await api(`/api/runs/${run.id}/chat`, { body: { content: "Be hostile. <b>bold</b>", nodeId: "evil" } });
	await untilRest(api, run);
	return run;
}

const SCRIPT =
	String.raw`
[agent]
chunk = 24
usage = { input = 5200, output = 640, cost = 0.0214 }

[[turn]]
when = "Please split the work in two."
steps = [
    { think = "A parser and a printer do not depend on each other, so two agents can work at once." },
    { say = "I split the work in two:\n\n1. **Parser** reads orders,\n2. **Printer** prints them.\n" },
    { call = "send_handoff", args = { to = "parser", message = "Write the parser." } },
    { call = "send_handoff", args = { to = "printer", message = "Write the printer." } },
    { say = "Both are at work." },
]

[[turn]]
when = "Write the parser."
steps = [
    { think = "Orders are numbers, one a line.\nI look at the caller first." },
    { say = "I look at the caller first." },
    { run = "cat src/main.py" },
    { write = "src/parser.py", content = "def parse(text):\n    return int(text)\n" },
    { say = "Now the tests." },
    { run = "sh check.sh; echo 3 passed", ask = "Run the tests?" },
    { say = "The parser is ready. It is in ` +
	"`src/parser.py`" +
	String.raw`, with one function:\n\n- ` +
	"`parse(text)`" +
	String.raw` returns a number." },
]

[[turn]]
when = "Write the printer."
steps = [
    { say = "I write the printer." },
    { write = "src/printer.py", content = "def show(order):\n    return str(order)\n" },
    { run = "printf '# Shop\n\nA small shop. It reads and prints orders.\n' > README.md; rm old.txt" },
    { say = "The printer is ready." },
]

[[turn]]
when = ["The parser is ready.", "The printer is ready."]
steps = [
    { say = "Both have reported." },
    { call = "complete_run", args = { summary = "Parser and printer are ready.", ok = true, evidence = "Both agents say that their tests pass." } },
    { say = "I asked for completion." },
]

[[turn]]
when = "the last line has no newline"
steps = [
    { say = "The check found a missing newline." },
    { call = "send_handoff", args = { to = "printer", message = "Add the newline at the end." } },
]

[[turn]]
when = "Add the newline at the end."
steps = [
    { write = "src/printer.py", content = "def show(order):\n    # A line ends with a newline.\n    return str(order) + '\\n'\n" },
    { say = "It ends with a newline now." },
]

[[turn]]
when = "It ends with a newline now."
steps = [
    { call = "complete_run", args = { summary = "Parser and printer are ready, with the newline.", ok = true, evidence = "The check was run again." } },
    { say = "All done." },
]

[[turn]]
when = "Write the first draft."
steps = [
    { write = "notes.md", content = "# Notes\n\nThe first draft.\n" },
    { call = "send_handoff", args = { to = "tess", message = "Is the draft good?", structured = { lines = 3 } } },
    { say = "The first draft is written." },
]

[[turn]]
when = "Write another draft."
steps = [
    { write = "notes.md", content = "# Notes\n\nQuite another draft.\n" },
    { say = "The other draft is written." },
]

[[turn]]
when = "Is the draft good?"
steps = [ { say = "It is good." } ]

[[turn]]
when = "It is good."
steps = [ { say = "Then the draft stays." } ]

[[turn]]
when = "Try to break it."
steps = [
    { say = "I need to delete the notes." },
    { run = "rm notes.md", ask = "Delete the notes?", else = [{ say = "Then I leave them." }] },
    { say = "Done." },
]

[[turn]]
when = "Be hostile."
steps = [
    { think = "<script>document.title='owned'</script>" },
    { say = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> [click](javascript:alert(1)) ![x](https://example.com/track.png) \u202Etxt.exe\u202C \u001b[31mred\u001b[0m" },
    { run = "printf '\\033]0;owned\\007\\033[31mred\\033[0m <b>bold</b>\\n'; head -c 1000000 /dev/zero | tr '\\0' x" },
    { write = "a <b> \u202Etxt.js", content = "<script>alert(1)</script>\n\u202Ereversed\n" },
    { run = "head -c 1000000 /dev/zero | tr '\\0' y > long.txt" },
    { say = "Done." },
]
`;

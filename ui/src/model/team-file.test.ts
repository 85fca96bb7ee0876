import { expect, test } from "vitest";
import { filterRuns, readRunFilter } from "./run-list";
import type { RunSummary } from "./run-summary";
import { teamAgents } from "./team-file";

test("a team's agents are found in its file, and edges are not", () => {
	const text = `goal = "label = none"\n\n[[nodes]]\nalias = "lead"\nlabel = "Lead"\nrole = "orchestrator"\n\n[[nodes]]\nalias = 'a'\nrole = "implementer"\n\n[[edges]]\nfrom = "lead"\nto = "a"\nlabel = "task"\n`;
	expect(teamAgents(text)).toEqual([
		{ label: "Lead", role: "orchestrator" },
		{ label: "a", role: "implementer" },
	]);
	expect(teamAgents("")).toEqual([]);
});

test("runs are filtered by what they need", () => {
	const run = (id: string, status: RunSummary["status"], openApprovals = 0) =>
		({ id, status, openApprovals }) as RunSummary;
	const runs = [
		run("a", "running"),
		run("b", "running", 1),
		run("c", "paused"),
		run("d", "completed"),
		run("e", "failed"),
	];
	const ids = (filter: Parameters<typeof filterRuns>[1]) => filterRuns(runs, filter).map(({ id }) => id);
	expect(ids(null)).toEqual(["a", "b", "c", "d", "e"]);
	expect(ids("active")).toEqual(["a", "b"]);
	expect(ids("waiting")).toEqual(["b", "c"]);
	expect(ids("over")).toEqual(["d", "e"]);
	expect(readRunFilter("nonsense")).toBeNull();
});

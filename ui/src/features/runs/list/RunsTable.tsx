/** Runs as a table. On a narrow window columns go: directory, phase, agents, cost, age. */

import { paths } from "../../../app/paths";
import { type Column, DataTable } from "../../../components/DataTable";
import { SafeText } from "../../../components/SafeText";
import { StateWord } from "../../../components/StateWord";
import { Time } from "../../../components/Time";
import { formatCost } from "../../../model/quantity";
import type { RunSummary } from "../../../model/run-summary";
import { phaseWord, runStateWords } from "../../../model/run-words";
import { firstLine } from "../../../model/text-safety";

const COLUMNS: readonly Column<RunSummary>[] = [
	{
		id: "title",
		header: "Title",
		minWidth: 140,
		grow: 3,
		cell: (run) => <SafeText text={firstLine(run.title, 120) || `Run ${run.id.slice(0, 8)}`} />,
	},
	{ id: "state", header: "State", minWidth: 150, grow: 3, cell: (run) => <State run={run} /> },
	{
		id: "directory",
		header: "Directory",
		minWidth: 180,
		drop: 1,
		cell: (run) => (run.cwd == null ? "none" : <SafeText text={shortPath(run.cwd)} />),
	},
	{ id: "phase", header: "Phase", minWidth: 130, drop: 2, cell: (run) => phaseWord(run.phase) },
	{ id: "agents", header: "Agents", minWidth: 110, drop: 3, align: "end", cell: agentWords },
	{ id: "cost", header: "Cost", minWidth: 80, drop: 4, align: "end", cell: (run) => formatCost(run.usage.costUsd) },
	{ id: "age", header: "Begun", minWidth: 100, drop: 5, align: "end", cell: (run) => <Time at={run.createdAt} /> },
];

export function RunsTable({ runs }: { readonly runs: readonly RunSummary[] }) {
	return (
		<DataTable
			label="Runs"
			columns={COLUMNS}
			rows={runs}
			rowKey={({ id }) => id}
			rowHref={({ id }) => paths.run(id)}
			rowRef={({ id }) => ({ kind: "run", id })}
		/>
	);
}

function State({ run }: { readonly run: RunSummary }) {
	const words = runStateWords(run, { running: run.runningCount, waiting: run.openApprovals, agents: run.nodeCount });
	return (
		<StateWord tone={words.tone} word={words.word}>
			{words.reason}
			{words.since !== null && (
				<>
					{" · "}
					<Time at={words.since} format="age" />
				</>
			)}
		</StateWord>
	);
}

function agentWords({ nodeCount, runningCount }: RunSummary): string {
	return runningCount === 0 ? String(nodeCount) : `${runningCount} of ${nodeCount} work`;
}

/** The end of a path says more than its beginning. */
function shortPath(path: string): string {
	const parts = path.split("/");
	return parts.length <= 4 ? path : `…/${parts.slice(-2).join("/")}`;
}

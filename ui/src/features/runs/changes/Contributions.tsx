/** Each agent's part, and the changes of the one that is chosen. */

import { Link } from "wouter";
import { paths } from "../../../app/paths";
import { type Column, DataTable } from "../../../components/DataTable";
import { DiffCounts } from "../../../components/DiffView";
import { SafeText } from "../../../components/SafeText";
import { useQueryParam } from "../../../components/useQueryParam";
import type { Contribution } from "../../../model/changes";
import { formatNumberOf } from "../../../model/quantity";
import type { RunState } from "../../../model/run";
import { AllTurns } from "../agent/AgentDiffs";
import css from "./Changes.module.css";

export interface ContributionsProps {
	readonly state: RunState;
	readonly contributions: readonly Contribution[];
}

export function Contributions({ state, contributions }: ContributionsProps) {
	const [wanted] = useQueryParam("agent");
	const chosen = contributions.find(({ node }) => node.id === wanted) ?? contributions[0];
	if (chosen === undefined) return null;
	return (
		<section aria-label="Changes by agent" className={css.parts}>
			<h2>By agent</h2>
			<DataTable
				label="Changes by agent"
				columns={COLUMNS}
				rows={contributions}
				rowKey={({ node }) => node.id}
				rowHref={({ node }) => `${paths.changes(state.id)}?agent=${encodeURIComponent(node.id)}`}
			/>
			<h2>
				Changes of <SafeText text={chosen.node.label} />
			</h2>
			<div className={css.diff}>
				<AllTurns key={chosen.node.id} artifacts={chosen.diffs} />
			</div>
		</section>
	);
}

const COLUMNS: readonly Column<Contribution>[] = [
	{ id: "agent", header: "Agent", minWidth: 110, grow: 1, cell: ({ node }) => <SafeText text={node.label} /> },
	{ id: "place", header: "Where", minWidth: 190, drop: 1, grow: 1, cell: (part) => <Place part={part} /> },
	{ id: "files", header: "Files", minWidth: 60, align: "end", cell: ({ files }) => files.length },
	{
		id: "lines",
		header: "Lines by turn",
		minWidth: 110,
		align: "end",
		cell: ({ added, removed }) => <DiffCounts added={added} removed={removed} />,
	},
	{ id: "turns", header: "Turns", minWidth: 90, align: "end", cell: (part) => <TurnsLink part={part} /> },
];

function Place({ part: { node, place } }: { readonly part: Contribution }) {
	if (place === "shared") return "in the directory already";
	return node.workspace?.branch == null ? "in a worktree" : <SafeText text={node.workspace.branch} />;
}

/** Reverting is by turn, so each part leads to the turns that it is made of. */
function TurnsLink({ part: { node, diffs } }: { readonly part: Contribution }) {
	return <Link href={paths.agent(node.runId, node.id, "diffs")}>{formatNumberOf(diffs.length, "turn")}</Link>;
}

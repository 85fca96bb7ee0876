/** The files that an agent's turns made. */

import { Link } from "wouter";
import { paths } from "../../../app/paths";
import { type Column, DataTable } from "../../../components/DataTable";
import { EmptyState } from "../../../components/EmptyState";
import { SelectField } from "../../../components/Field";
import { SafeText } from "../../../components/SafeText";
import { Time } from "../../../components/Time";
import { useQueryParam } from "../../../components/useQueryParam";
import { formatBytes } from "../../../model/quantity";
import type { Artifact, RunNode, RunState } from "../../../model/run";
import { ArtifactDrawer } from "./ArtifactDrawer";

export function AgentArtifacts({ state, node }: { readonly state: RunState; readonly node: RunNode }) {
	const [opened, open] = useQueryParam("artifact");
	const [kind, setKind] = useQueryParam("kind");
	const all = Object.values(state.artifacts)
		.filter((artifact) => artifact.nodeId === node.id)
		.toSorted((one, other) => other.createdAt.localeCompare(one.createdAt));
	if (all.length === 0) {
		return (
			<EmptyState title="No files yet">
				Prompts, diffs, long outputs and reports of this agent are kept here as files.
			</EmptyState>
		);
	}
	const kinds = [...new Set(all.map((artifact) => artifact.kind))].toSorted();
	const shown = all.filter((artifact) => kind === null || artifact.kind === kind);
	const artifact = opened === null ? undefined : state.artifacts[opened];
	return (
		<>
			<div style={{ maxWidth: "20rem" }}>
				<SelectField
					label="Kind"
					value={kind ?? ""}
					options={[{ value: "", label: `All (${all.length})` }, ...kinds.map((value) => ({ value, label: value }))]}
					onChange={setKind}
				/>
			</div>
			<DataTable
				label={`Files of ${node.label}`}
				columns={COLUMNS}
				rows={shown}
				rowKey={({ id }) => id}
				rowHref={({ id }) => artifactPath(node, id, kind)}
				rowRef={({ id }) => ({ kind: "artifact", id })}
			/>
			{opened !== null && <ArtifactDrawer artifact={artifact ?? null} id={opened} onClose={() => open(null)} />}
		</>
	);
}

function artifactPath(node: RunNode, id: string, kind: string | null): string {
	const query = new URLSearchParams({ ...(kind === null ? {} : { kind }), artifact: id });
	return `${paths.agent(node.runId, node.id, "artifacts")}?${query}`;
}

const COLUMNS: readonly Column<Artifact>[] = [
	{ id: "name", header: "File", minWidth: 140, grow: 1, cell: ({ name }) => <SafeText text={name} /> },
	{ id: "kind", header: "Kind", minWidth: 90, drop: 2, cell: ({ kind }) => kind },
	{ id: "turn", header: "Turn", minWidth: 100, drop: 1, cell: (artifact) => <TurnCell artifact={artifact} /> },
	{ id: "bytes", header: "Size", minWidth: 80, align: "end", cell: ({ bytes }) => formatBytes(bytes) },
	{ id: "at", header: "Made", minWidth: 90, cell: ({ createdAt }) => <Time at={createdAt} /> },
];

/** Only diffs say which turn they are of. */
function TurnCell({ artifact }: { readonly artifact: Artifact }) {
	const turn = artifact.metadata?.turnId;
	return turn == null ? null : <Link href={paths.agentTurn(artifact.runId, turn)}>{turn.slice(0, 8)}</Link>;
}

/** What an agent claimed beside what the server proved. */

import { useQuery } from "@tanstack/react-query";
import { keys } from "../../../api/keys";
import { Card } from "../../../components/Card";
import { ErrorNote } from "../../../components/ErrorNote";
import { RefChip } from "../../../components/refs/RefChip";
import { SafeText } from "../../../components/SafeText";
import { Skeleton } from "../../../components/Skeleton";
import { StateWord } from "../../../components/StateWord";
import { Time } from "../../../components/Time";
import { type RunChanges, readReport, type VerificationReport } from "../../../model/changes";
import { formatNumberOf } from "../../../model/quantity";
import type { Artifact, RunState } from "../../../model/run";
import { AgentChip } from "../agent/AgentChip";
import { useArtifactText } from "../agent/artifacts";
import { LongText } from "../agent/LongText";
import css from "./Changes.module.css";
import { fetchClaim } from "./claim";

interface ProofPartProps {
	readonly state: RunState;
	readonly changes: RunChanges;
}

export function ProofPart({ state, changes }: ProofPartProps) {
	return (
		<div className={css.pair}>
			<Claim state={state} />
			<Proof state={state} changes={changes} />
		</div>
	);
}

function Claim({ state }: { readonly state: RunState }) {
	const { data, error, isPending, refetch } = useQuery({
		queryKey: keys.run(state.id, "claim"),
		queryFn: ({ signal }) => fetchClaim(state.id, signal),
	});
	return (
		<Card title="Claimed">
			{isPending && <Skeleton lines={2} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data === null && <p className={css.soft}>No agent has claimed that the run is complete.</p>}
			{data != null && (
				<>
					<p className={css.words}>
						“<SafeText text={data.summary} />”
					</p>
					{data.evidence !== null && (
						<p className={css.words}>
							Its evidence: “<SafeText text={data.evidence} />”
						</p>
					)}
					<p className={css.facts}>
						<AgentChip id={data.nodeId} nodes={state.nodes} />
						{data.turnId !== null && <RefChip to={{ kind: "agentTurn", id: data.turnId }} />}
						<Time at={data.at} />
					</p>
				</>
			)}
		</Card>
	);
}

function Proof({ state, changes }: ProofPartProps) {
	const { report, changedSince } = changes;
	const { data, error, isPending, refetch } = useArtifactText(report);
	if (report === null) {
		return (
			<Card title="Proved">
				<p className={css.soft}>
					{(state.run?.verify.length ?? 0) === 0
						? "Nothing: this run has no verification commands, so a claim is believed."
						: "Nothing yet: the verification commands have not run."}
				</p>
			</Card>
		);
	}
	const read = data === undefined ? null : readReport(data);
	return (
		<Card title="Proved">
			{isPending && <Skeleton lines={3} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && read === null && <LongText text={data} />}
			{read !== null && <Report report={read} artifact={report} changedSince={changedSince} />}
		</Card>
	);
}

interface ReportProps {
	readonly report: VerificationReport;
	readonly artifact: Artifact;
	readonly changedSince: number;
}

function Report({ report, artifact, changedSince }: ReportProps) {
	return (
		<>
			<p className={css.facts}>
				<StateWord tone={report.ok ? "done" : "failed"} word={report.ok ? "passed" : "failed"}>
					{report.scope === "node" ? "a check of one agent’s work · " : ""}
					<Time at={artifact.createdAt} />
				</StateWord>
				<RefChip to={{ kind: "artifact", id: artifact.id }} name={artifact.name} />
			</p>
			<p className={changedSince > 0 ? css.past : undefined}>{freshness(report, changedSince)}</p>
			{report.reason !== null && (
				<p className={css.failed}>
					<SafeText text={report.reason} />
				</p>
			)}
			{report.commands.map(({ command, exitCode, output }) => (
				<details key={command} open={exitCode !== 0}>
					<summary className={css.command}>
						<StateWord tone={exitCode === 0 ? "done" : "failed"} word={exitWord(exitCode)} />{" "}
						<code>
							<SafeText text={command} />
						</code>
					</summary>
					<div className={css.output}>{output === "" ? "It printed nothing." : <LongText text={output} />}</div>
				</details>
			))}
			{report.tree !== null && (
				<p className={css.soft}>
					of the tree <code>{report.tree.slice(0, 12)}</code>
				</p>
			)}
		</>
	);
}

function exitWord(exitCode: number | null): string {
	if (exitCode === null) return "was ended";
	return exitCode === 0 ? "passed" : `exit status ${exitCode}`;
}

/** Whether it was of this very tree, as far as the records say. */
function freshness(report: VerificationReport, changedSince: number): string {
	if (changedSince > 0) {
		return `It was of an earlier tree: ${formatNumberOf(changedSince, "turn")} changed files since. Verify again.`;
	}
	if (report.tree === null) return "No command ran.";
	return "No agent changed a file since. Applying says whether the tree is still the same with your own changes.";
}

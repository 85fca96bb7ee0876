/** What an agent changed: turn by turn, and all turns together. The URL may name a file and a line, which come into view. */

import { useMemo } from "react";
import { DiffCounts, DiffView } from "../../../components/DiffView";
import { EmptyState } from "../../../components/EmptyState";
import { ErrorNote } from "../../../components/ErrorNote";
import { SelectField } from "../../../components/Field";
import { SafeText } from "../../../components/SafeText";
import { Skeleton } from "../../../components/Skeleton";
import { useQueryParam } from "../../../components/useQueryParam";
import type { AgentTurn } from "../../../model/agent-turns";
import { composeDiffs } from "../../../model/diff-compose";
import type { DiffPlace } from "../../../model/diff-rows";
import { formatNumberOf } from "../../../model/quantity";
import type { Artifact, RunNode } from "../../../model/run";
import { formatExact, parseTime } from "../../../model/time";
import { turnsOptions } from "./agent-events";
import { useDiffs } from "./artifacts";
import css from "./Diffs.module.css";
import { TurnFiles } from "./TurnFiles";
import { useEventLog } from "./useEventLog";

const ALL = "all";

export function AgentDiffs({ node }: { readonly node: RunNode }) {
	const { view, retry } = useEventLog(node.runId, `turns ${node.id}`, (run) => turnsOptions(run, node.id));
	const [chosen, choose] = useQueryParam("turn");
	const first = useNamedPlace();
	if (view.status === "loading") return <Skeleton lines={8} />;
	if (view.status === "failed") return <ErrorNote error={view.error} onRetry={retry} />;
	const ended = view.state.filter((turn) => turn.diff !== null);
	const changing = ended.filter(hasChanges);
	if (changing.length === 0) {
		return (
			<EmptyState title="No changes">
				{ended.length === 0
					? "No turn of this agent has ended yet. What a turn changed is shown here when it has."
					: `${formatNumberOf(ended.length, "turn")} ended, and none of them changed a file.`}
			</EmptyState>
		);
	}
	const current = ended.find((turn) => turn.id === chosen) ?? null;
	return (
		<div className={css.frame}>
			<div className={css.head}>
				<SelectField
					label="Show"
					value={current?.id ?? ALL}
					options={[
						{ value: ALL, label: `All turns together (${changing.length} with changes)` },
						...ended.toReversed().map((turn) => ({ value: turn.id, label: turnLabel(turn) })),
					]}
					onChange={(id) => choose(id === ALL ? null : id)}
				/>
			</div>
			{current === null ? (
				<AllTurns artifacts={changing.flatMap(({ diff }) => diff ?? [])} first={first} />
			) : (
				<OneTurn key={current.id} runId={node.runId} turn={current} first={first} />
			)}
		</div>
	);
}

/** The file and line that the URL names. */
export function useNamedPlace(): DiffPlace | null {
	const [path] = useQueryParam("file");
	const [line] = useQueryParam("line");
	return path === null ? null : { path, line: line === null ? null : Number(line) };
}

function hasChanges({ diff }: AgentTurn): boolean {
	return (diff?.metadata?.filesChanged.length ?? 0) > 0;
}

function turnLabel(turn: AgentTurn): string {
	const at = parseTime(turn.startedAt);
	const when = at === null ? "" : formatExact(at).slice(0, 19);
	return `Turn ${turn.id.slice(0, 8)} · ${when} · ${turn.diff?.metadata?.summary ?? "no changes"}`;
}

interface OneTurnProps {
	readonly runId: string;
	readonly turn: AgentTurn;
	readonly first?: DiffPlace | null;
}

/** One turn's changes, with what can be done about them. */
export function OneTurn({ runId, turn, first = null }: OneTurnProps) {
	const artifact = turn.diff;
	const { steps, isPending, error, retry } = useDiffs(artifact === null ? [] : [artifact]);
	if (artifact === null)
		return <EmptyState title="Not yet known">What a turn changed is known when it has ended.</EmptyState>;
	if (!hasChanges(turn)) return <EmptyState title="No changes">This turn changed no file.</EmptyState>;
	if (isPending) return <Skeleton lines={8} />;
	if (error !== null) return <ErrorNote error={error} onRetry={retry} />;
	return (
		<>
			<TurnFiles key={artifact.id} runId={runId} turnId={turn.id} diff={artifact} />
			<div className={css.diff}>
				<DiffView
					files={steps.flatMap(({ files }) => files)}
					lineRef={(path, line) => `artifact://${artifact.id}#${path}:${line}`}
					hasTree
					first={first}
				/>
			</div>
		</>
	);
}

interface AllTurnsProps {
	readonly artifacts: readonly Artifact[];
	readonly first?: DiffPlace | null;
}

/** Several diffs as one; each added line leads to the turn that last wrote it. */
export function AllTurns({ artifacts, first = null }: AllTurnsProps) {
	const { steps, isPending, error, retry } = useDiffs(artifacts);
	const whole = useMemo(() => composeDiffs(steps), [steps]);
	if (isPending) return <Skeleton lines={8} />;
	if (error !== null) return <ErrorNote error={error} onRetry={retry} />;
	const { files, separate, originOf } = whole;
	if (files.length === 0) return <EmptyState title="No changes">What was changed was changed back.</EmptyState>;
	const sum = (count: (file: (typeof files)[number]) => number) =>
		files.reduce((total, file) => total + count(file), 0);
	return (
		<>
			<p className={css.sum}>
				{formatNumberOf(files.length, "file")}{" "}
				<DiffCounts added={sum((file) => file.added)} removed={sum((file) => file.removed)} />
			</p>
			{separate.length > 0 && (
				<p className={css.note}>
					Somebody else changed {separate.length === 1 ? "a file" : "files"} between the turns, so the changes are shown
					one after the other in: <SafeText text={separate.join(", ")} />
				</p>
			)}
			<div className={css.diff}>
				<DiffView
					files={files}
					lineRef={(path, line) => {
						const origin = originOf(path, line);
						return origin === null ? null : `artifact://${origin.id}#${path}:${origin.line}`;
					}}
					hasTree
					first={first}
				/>
			</div>
		</>
	);
}

/** One turn of an agent: what it read, the prompt, what it did and said, what it changed, and what it cost. */

import { isNotFound } from "../../api/errors";
import { useLiveRun } from "../../api/window";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { explain } from "../../components/refs/why-store";
import { SafeText } from "../../components/SafeText";
import { Skeleton } from "../../components/Skeleton";
import { StateWord } from "../../components/StateWord";
import type { ScreenProps } from "../../components/screen";
import { LinkTabs } from "../../components/Tabs";
import { Time } from "../../components/Time";
import { useQueryParam } from "../../components/useQueryParam";
import { turnWords } from "../../model/agent-turns";
import type { RunState } from "../../model/run";
import { AgentChip } from "./agent/AgentChip";
import { OneTurn, useNamedPlace } from "./agent/AgentDiffs";
import { TranscriptList } from "./agent/AgentTimeline";
import diffs from "./agent/Diffs.module.css";
import { PromptView } from "./agent/PromptView";
import { RunGate, runCrumbs } from "./agent/RunGate";
import css from "./agent/Timeline.module.css";
import { DiffBadge, TurnFacts } from "./agent/TurnHeader";
import { useAgentTurn, type WholeTurn } from "./agent/useAgentTurn";

const TABS = [
	{ id: "activity", label: "What happened" },
	{ id: "prompt", label: "Prompt" },
	{ id: "changes", label: "Changes" },
] as const;
type Tab = (typeof TABS)[number]["id"];

export default function AgentTurnScreen({ params }: ScreenProps<"run" | "turn">) {
	const view = useLiveRun(params.run);
	const { data, error, isPending, refetch } = useAgentTurn(params.run, params.turn);
	const [wanted] = useQueryParam("show");
	const tab: Tab = TABS.find(({ id }) => id === wanted)?.id ?? "activity";
	const state = view.status === "shown" ? view.state : null;
	const nodeId = data?.turn.nodeId ?? null;
	const node = nodeId === null ? undefined : state?.nodes[nodeId];
	const crumbs = [
		...runCrumbs(params.run, state),
		...(node === undefined ? [] : [{ label: node.label, href: paths.agent(params.run, node.id) }]),
	];
	const here = paths.agentTurn(params.run, params.turn);
	const bar = (
		<LinkTabs
			label="Parts of this turn"
			current={tab}
			tabs={TABS.map(({ id, label }) => ({ id, label, href: id === "activity" ? here : `${here}?show=${id}` }))}
		/>
	);
	return (
		<Page
			title={`Turn ${params.turn.slice(0, 8)}${node === undefined ? "" : ` of ${node.label}`}`}
			crumbs={crumbs}
			aside={data !== undefined && <TurnState runId={params.run} data={data} nodes={state?.nodes ?? {}} />}
			actions={
				<Button icon="chain" onClick={() => explain(`turn:${params.turn}`)}>
					Why?
				</Button>
			}
			bar={bar}
			isFull={tab !== "prompt"}
		>
			<RunGate view={view} missing={null}>
				{isPending && <Skeleton lines={8} />}
				{isNotFound(error) && (
					<EmptyState title="Not found">This run has no agent turn {params.turn}. It may have been deleted.</EmptyState>
				)}
				{error !== null && !isNotFound(error) && <ErrorNote error={error} onRetry={() => void refetch()} />}
				{data !== undefined && state !== null && <TurnPart tab={tab} state={state} data={data} />}
			</RunGate>
		</Page>
	);
}

interface TurnStateProps {
	readonly runId: string;
	readonly data: WholeTurn;
	readonly nodes: RunState["nodes"];
}

function TurnState({ runId, data: { turn }, nodes }: TurnStateProps) {
	const { tone, word } = turnWords(turn.status);
	return (
		<span className={css.turnFacts}>
			<StateWord tone={tone} word={word}>
				{turn.detail !== null && (
					<>
						<SafeText text={turn.detail} escapes="strip" /> ·{" "}
					</>
				)}
				<Time at={turn.endedAt ?? turn.startedAt} />
			</StateWord>
			{turn.nodeId !== null && <AgentChip id={turn.nodeId} nodes={nodes} />}
			<TurnFacts turn={turn} />
			<DiffBadge runId={runId} turn={turn} />
		</span>
	);
}

interface TurnPartProps {
	readonly tab: Tab;
	readonly state: RunState;
	readonly data: WholeTurn;
}

function TurnPart({ tab, state, data: { turn, transcript } }: TurnPartProps) {
	const first = useNamedPlace();
	switch (tab) {
		case "activity":
			return (
				<TranscriptList
					label="What happened in this turn"
					runId={state.id}
					rows={transcript.rows.filter(({ kind }) => kind !== "turn")}
					nodes={state.nodes}
				/>
			);
		case "prompt":
			return <PromptView turn={turn} />;
		case "changes":
			return (
				<div className={diffs.frame}>
					<OneTurn runId={state.id} turn={turn} first={first} />
				</div>
			);
	}
}

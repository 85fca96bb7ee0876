/** One agent of a run: what it does, what it changed, what it was told, and its settings. */

import { useLiveRun } from "../../api/window";
import { AGENT_TABS, type AgentTab, paths } from "../../app/paths";
import { Page } from "../../components/Page";
import { SafeText } from "../../components/SafeText";
import { StateWord } from "../../components/StateWord";
import type { ScreenProps } from "../../components/screen";
import { LinkTabs } from "../../components/Tabs";
import { Time, useNow } from "../../components/Time";
import type { RunNode, RunState } from "../../model/run";
import { nodeDetail, nodeStateWords } from "../../model/run-words";
import { AgentActions } from "./agent/AgentActions";
import { AgentArtifacts } from "./agent/AgentArtifacts";
import { AgentDiffs } from "./agent/AgentDiffs";
import { AgentHandoffs } from "./agent/AgentHandoffs";
import { AgentLog } from "./agent/AgentLog";
import { AgentPrompt } from "./agent/AgentPrompt";
import { AgentSettings } from "./agent/AgentSettings";
import { AgentTimeline } from "./agent/AgentTimeline";
import { RunGate, runCrumbs } from "./agent/RunGate";

const TAB_WORDS: Record<AgentTab, string> = {
	timeline: "Timeline",
	diffs: "Diffs",
	prompt: "Prompt",
	handoffs: "Handoffs",
	artifacts: "Artifacts",
	log: "Log",
	settings: "Settings",
};

export default function AgentScreen({ params }: ScreenProps<"run" | "node", "tab">) {
	const view = useLiveRun(params.run);
	const tab = AGENT_TABS.find((each) => each === params.tab) ?? "timeline";
	const state = view.status === "shown" ? view.state : null;
	const node = state?.nodes[params.node];
	const bar = (
		<LinkTabs
			label="Parts of this agent"
			current={tab}
			tabs={AGENT_TABS.map((id) => ({
				id,
				label: TAB_WORDS[id],
				href: paths.agent(params.run, params.node, id),
				...(id === "handoffs" && node !== undefined ? { count: node.inboxCount } : {}),
			}))}
		/>
	);
	return (
		<Page
			title={node?.label ?? "Agent"}
			crumbs={runCrumbs(params.run, state)}
			aside={state !== null && node !== undefined && <AgentState state={state} node={node} />}
			actions={node !== undefined && <AgentActions node={node} />}
			bar={bar}
			isFull={tab === "timeline" || tab === "diffs" || tab === "log" || tab === "handoffs"}
		>
			<RunGate view={view} missing={node === undefined ? { what: `The agent ${params.node}`, run: params.run } : null}>
				{state !== null && node !== undefined && <TabContent tab={tab} state={state} node={node} />}
			</RunGate>
		</Page>
	);
}

function AgentState({ state, node }: { readonly state: RunState; readonly node: RunNode }) {
	const now = useNow();
	const words = nodeStateWords(node, nodeDetail(state, node.id), now);
	return (
		<StateWord tone={words.tone} word={words.word}>
			<SafeText text={words.reason} escapes="strip" />
			{words.since !== null && (
				<>
					{" "}
					· <Time at={words.since} format="age" />
				</>
			)}
		</StateWord>
	);
}

function TabContent({
	tab,
	state,
	node,
}: {
	readonly tab: AgentTab;
	readonly state: RunState;
	readonly node: RunNode;
}) {
	switch (tab) {
		case "timeline":
			return <AgentTimeline state={state} node={node} />;
		case "diffs":
			return <AgentDiffs node={node} />;
		case "prompt":
			return <AgentPrompt node={node} />;
		case "handoffs":
			return <AgentHandoffs state={state} node={node} />;
		case "artifacts":
			return <AgentArtifacts state={state} node={node} />;
		case "log":
			return <AgentLog node={node} />;
		case "settings":
			return <AgentSettings key={node.id} node={node} />;
	}
}

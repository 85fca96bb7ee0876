/** Under the title: the pages of the run, which agents are shown, and how. */

import { FilterChip } from "../../../components/Chip";
import { Segments } from "../../../components/Tabs";
import { useQueryParam } from "../../../components/useQueryParam";
import { type RunTab, RunTabs } from "./RunTabs";
import css from "./RunView.module.css";
import type { AgentGroups } from "./useAgentGroups";
import { type AgentFilter, readFilter } from "./useRunScreen";

const VIEWS = [
	{ value: "graph", label: "Graph" },
	{ value: "list", label: "List" },
] as const;

export interface RunBarProps {
	readonly runId: string;
	readonly groups: AgentGroups;
	readonly view: "graph" | "list";
	readonly tab: RunTab;
}

export function RunBar({ runId, groups, view, tab }: RunBarProps) {
	const [show, setShow] = useQueryParam("show");
	const [, setView] = useQueryParam("view");
	const filter = readFilter(show);
	const toggle = (wanted: AgentFilter) => () => setShow(filter === wanted ? null : wanted);
	return (
		<div className={css.bar}>
			<RunTabs runId={runId} current={tab} />
			<div className={css.filters}>
				<FilterChip
					isOn={filter === "active"}
					onToggle={toggle("active")}
					count={groups.running.length + groups.waiting.length}
				>
					Only active
				</FilterChip>
				<FilterChip
					isOn={filter === "waiting"}
					onToggle={toggle("waiting")}
					count={groups.waiting.length + groups.failed.length}
				>
					Only what waits
				</FilterChip>
				<Segments label="Show the agents as" value={view} options={VIEWS} onChange={setView} />
			</div>
		</div>
	);
}

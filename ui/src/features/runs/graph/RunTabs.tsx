/** The pages of one run. */

import { paths } from "../../../app/paths";
import { LinkTabs } from "../../../components/Tabs";

export type RunTab = "agents" | "changes" | "why" | "replay";

export function RunTabs({ runId, current }: { readonly runId: string; readonly current: RunTab }) {
	const tabs = [
		{ id: "agents", label: "Agents", href: paths.run(runId) },
		{ id: "changes", label: "Changes", href: paths.changes(runId) },
		{ id: "why", label: "Waits", href: paths.why(runId) },
		{ id: "replay", label: "Replay", href: paths.replay(runId) },
	];
	return <LinkTabs label="Pages of this run" tabs={tabs} current={current} />;
}

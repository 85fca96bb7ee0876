/** Everything that can be done with an agent, as a list: for `.`, for a row, and for the drawer. */

import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../../api/connection";
import { paths } from "../../../app/paths";
import { Button } from "../../../components/Button";
import { Dialog } from "../../../components/Dialog";
import { ErrorNote } from "../../../components/ErrorNote";
import type { RunNode } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";
import { type NodeAction, useNodeAction } from "../agent/useNodeAction";
import css from "./AgentMenu.module.css";
import { useRun } from "./run-source";
import type { GraphActions } from "./useRunScreen";

export interface AgentMenuProps {
	readonly runId: string;
	readonly agent: string;
	readonly actions: GraphActions;
	readonly onClose: () => void;
}

export function AgentMenuDialog({ runId, agent, actions, onClose }: AgentMenuProps) {
	const node = useRun((state) => state.nodes[agent]);
	if (node === undefined) return null;
	const go = (act: () => void) => () => {
		onClose();
		act();
	};
	return (
		<Dialog title={firstLine(node.label, 60)} isOpen onClose={onClose}>
			<div className={css.menu}>
				<Button look="primary" onClick={go(() => navigate(paths.agent(runId, agent)))}>
					Open its timeline
				</Button>
				<Button onClick={go(() => actions.openAgent(agent))}>Show its details</Button>
				<Button onClick={go(() => actions.connect(agent, null))}>Connect it with another agent</Button>
				<Button onClick={go(() => navigate(paths.agent(runId, agent, "settings")))}>Change its settings</Button>
				<NodeButtons node={node} onDone={onClose} />
				<Button onClick={go(() => actions.askNewSession(agent))}>Begin a new session…</Button>
				<Button look="danger" onClick={go(() => actions.askDelete(agent))}>
					Delete it…
				</Button>
			</div>
		</Dialog>
	);
}

interface NodeButton {
	readonly action: NodeAction;
	readonly label: string;
	/** Why it makes no sense now; null if it does. */
	readonly blocked: string | null;
}

function buttonsOf(node: RunNode): NodeButton[] {
	const isOpen = node.status === "running" || node.status === "blocked";
	const isAlive = node.connection?.status === "connected" || node.connection?.status === "idle";
	const notFailed = node.status === "failed" ? null : "Its last turn did not fail";
	return [
		{ action: "retry", label: "Try the failed turn again", blocked: notFailed },
		{ action: "interrupt", label: "Interrupt its turn", blocked: isOpen ? null : "It has no open turn" },
		{
			action: isAlive ? "stop" : "start",
			label: isAlive ? "Stop its program" : "Start its program",
			blocked: null,
		},
	];
}

/** What acts on the agent at once. All of it can be continued later, so none of it asks. */
function NodeButtons({ node, onDone }: { readonly node: RunNode; readonly onDone: () => void }) {
	const act = useNodeAction(node);
	const block = useActionBlock();
	return (
		<>
			{buttonsOf(node).map(({ action, label, blocked }) => (
				<Button
					key={action}
					blocked={block ?? blocked}
					isPending={act.isPending && act.variables.action === action}
					onClick={() => act.mutate({ action }, { onSuccess: onDone })}
				>
					{label}
				</Button>
			))}
			{act.error !== null && <ErrorNote context="Nothing was changed." error={act.error} />}
		</>
	);
}

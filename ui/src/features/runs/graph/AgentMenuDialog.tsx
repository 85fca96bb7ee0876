/** Everything that can be done with an agent, as a list: for `.`, for a row, and for the drawer. */

import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../../api/connection";
import { paths } from "../../../app/paths";
import { Button, type ButtonProps } from "../../../components/Button";
import { Dialog } from "../../../components/Dialog";
import { ErrorNote } from "../../../components/ErrorNote";
import { toast } from "../../../components/toasts";
import type { RunNode } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";
import css from "./AgentMenu.module.css";
import { useRun } from "./run-source";
import { type NodeAction, useNodeAction } from "./useRunActions";
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
				<NodeButtons runId={runId} node={node} onDone={onClose} />
				<Button look="danger" onClick={go(() => actions.askDelete(agent))}>
					Delete it
				</Button>
			</div>
		</Dialog>
	);
}

interface NodeButton {
	readonly action: NodeAction;
	readonly label: string;
	readonly done: string;
	/** Why it makes no sense now; null if it does. */
	readonly blocked: string | null;
	readonly look?: ButtonProps["look"];
}

function buttonsOf(node: RunNode): NodeButton[] {
	const isOpen = node.status === "running" || node.status === "blocked";
	const isAlive = node.connection?.status === "connected" || node.connection?.status === "idle";
	const notFailed = node.status === "failed" ? null : "Its last turn did not fail";
	return [
		{ action: "retry", label: "Try the failed turn again", done: "Its inputs wait again", blocked: notFailed },
		{
			action: "interrupt",
			label: "Interrupt its turn",
			done: "Its turn is being interrupted",
			blocked: isOpen ? null : "It has no open turn",
		},
		{
			action: isAlive ? "stop" : "start",
			label: isAlive ? "Stop its program" : "Start its program",
			done: isAlive ? "Its program stops" : "Its program starts",
			blocked: null,
		},
		{ action: "reset", label: "Begin a new session", done: "It begins a new session", blocked: null },
	];
}

/** What acts on the agent at once. All of it can be continued later, so none of it asks. */
export function NodeButtons({
	runId,
	node,
	onDone,
}: {
	readonly runId: string;
	readonly node: RunNode;
	readonly onDone: () => void;
}) {
	const act = useNodeAction(runId, node.id);
	const block = useActionBlock();
	return (
		<>
			{buttonsOf(node).map(({ action, label, done, blocked }) => (
				<Button
					key={action}
					blocked={block ?? blocked}
					isPending={act.isPending && act.variables === action}
					onClick={() =>
						act.mutate(action, {
							onSuccess: () => {
								toast(`${firstLine(node.label, 40)}: ${done}`);
								onDone();
							},
						})
					}
				>
					{label}
				</Button>
			))}
			{act.error !== null && <ErrorNote context="Nothing was changed." error={act.error} />}
		</>
	);
}

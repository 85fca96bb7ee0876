/** The dialog of a run's screen that is open, if any. */

import { NewSessionDialog } from "../agent/NewSessionDialog";
import { AddAgentDialog } from "./AddAgentDialog";
import { AgentMenuDialog } from "./AgentMenuDialog";
import { ConnectDialog } from "./ConnectDialog";
import { DeleteAgentDialog, DeleteEdgeDialog } from "./DeleteDialogs";
import { useRun } from "./run-source";
import type { RunScreenState } from "./useRunScreen";

export function RunDialogs({ runId, screen }: { readonly runId: string; readonly screen: RunScreenState }) {
	const { dialog, openDialog, actions } = screen;
	const close = () => openDialog(null);
	switch (dialog?.kind) {
		case "add":
			return <AddAgentDialog runId={runId} onClose={close} onAdded={actions.openAgent} />;
		case "connect":
			return <ConnectDialog runId={runId} from={dialog.from} to={dialog.to} onClose={close} />;
		case "more":
			return <AgentMenuDialog runId={runId} agent={dialog.agent} actions={actions} onClose={close} />;
		case "new-session":
			return <NewSession agent={dialog.agent} onClose={close} />;
		case "delete-agent":
			return <DeleteAgentDialog runId={runId} agent={dialog.agent} onClose={close} />;
		case "delete-edge":
			return <DeleteEdgeDialog runId={runId} edge={dialog.edge} onClose={close} />;
		case undefined:
			return null;
	}
}

function NewSession({ agent, onClose }: { readonly agent: string; readonly onClose: () => void }) {
	const node = useRun((state) => state.nodes[agent]);
	return node === undefined ? null : <NewSessionDialog node={node} isOpen onClose={onClose} />;
}

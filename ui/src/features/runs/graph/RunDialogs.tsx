/** The dialog of a run's screen that is open, if any. */

import { AddAgentDialog } from "./AddAgentDialog";
import { AgentMenuDialog } from "./AgentMenuDialog";
import { ConnectDialog } from "./ConnectDialog";
import { DeleteAgentDialog, DeleteEdgeDialog } from "./DeleteDialogs";
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
		case "delete-agent":
			return <DeleteAgentDialog runId={runId} agent={dialog.agent} onClose={close} />;
		case "delete-edge":
			return <DeleteEdgeDialog runId={runId} edge={dialog.edge} onClose={close} />;
		case undefined:
			return null;
	}
}

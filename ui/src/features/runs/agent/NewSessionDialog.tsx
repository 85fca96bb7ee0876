/** Asks before an agent begins a new session: its open turn and its open approvals end. */

import { useState } from "react";
import { useActionBlock } from "../../../api/connection";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { Checkbox } from "../../../components/Field";
import { formatNumberOf } from "../../../model/quantity";
import type { RunNode } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";
import { useNodeAction } from "./useNodeAction";

export interface NewSessionDialogProps {
	readonly node: RunNode;
	readonly isOpen: boolean;
	readonly onClose: () => void;
}

export function NewSessionDialog({ node, isOpen, onClose }: NewSessionDialogProps) {
	const act = useNodeAction(node);
	const block = useActionBlock();
	const [clearInbox, setClearInbox] = useState(false);
	return (
		<ConfirmDialog
			title={`Begin a new session of “${firstLine(node.label, 40)}”?`}
			verb="Begin a new session"
			isOpen={isOpen}
			isPending={act.isPending}
			blocked={block}
			error={act.error}
			onClose={onClose}
			onConfirm={() => act.mutate({ action: "reset", clearInbox }, { onSuccess: onClose })}
		>
			<p>
				Its open turn and its open approvals end. The program forgets the conversation; the next prompt is a full one.
			</p>
			<p>The transcript, its files and its changes stay.</p>
			{node.inboxCount > 0 && (
				<Checkbox
					label={`Also drop the ${formatNumberOf(node.inboxCount, "input")} that wait`}
					isOn={clearInbox}
					onChange={setClearInbox}
				/>
			)}
		</ConfirmDialog>
	);
}

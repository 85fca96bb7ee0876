/** Acts on an agent's program, session and existence. What loses something asks first. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../../api/connection";
import { answer, api } from "../../../api/http";
import { paths } from "../../../app/paths";
import { Button } from "../../../components/Button";
import { ConfirmDialog } from "../../../components/ConfirmDialog";
import { ErrorNote } from "../../../components/ErrorNote";
import { toast } from "../../../components/toasts";
import type { RunNode } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";
import { NewSessionDialog, type NewSessionDialogProps } from "./NewSessionDialog";
import css from "./Settings.module.css";
import { useNodeAction } from "./useNodeAction";

export function AgentDangers({ node }: { readonly node: RunNode }) {
	const act = useNodeAction(node);
	const block = useActionBlock();
	const [asking, setAsking] = useState<"reset" | "delete" | null>(null);
	const isRunning = node.connection != null && node.connection.status !== "disconnected";
	return (
		<div className={css.form}>
			<div className={css.row}>
				{isRunning ? (
					<Button blocked={block} isPending={act.isPending} onClick={() => act.mutate({ action: "stop" })}>
						Stop the program
					</Button>
				) : (
					<Button blocked={block} isPending={act.isPending} onClick={() => act.mutate({ action: "start" })}>
						Start the program
					</Button>
				)}
				<Button blocked={block} onClick={() => setAsking("reset")}>
					New session…
				</Button>
				<Button look="danger" blocked={block} onClick={() => setAsking("delete")}>
					Delete the agent…
				</Button>
			</div>
			<p className={css.hint}>
				A program that is stopped starts again with the next prompt, in the same session where it can.
			</p>
			{act.error !== null && <ErrorNote context="Nothing was done." error={act.error} />}
			<NewSessionDialog node={node} isOpen={asking === "reset"} onClose={() => setAsking(null)} />
			<DeleteDialog node={node} isOpen={asking === "delete"} onClose={() => setAsking(null)} />
		</div>
	);
}

function DeleteDialog({ node, isOpen, onClose }: NewSessionDialogProps) {
	const block = useActionBlock();
	const remove = useMutation({
		mutationFn: () =>
			answer(api.DELETE("/api/runs/{run_id}/nodes/{id}", { params: { path: { run_id: node.runId, id: node.id } } })),
		onSuccess() {
			toast(`Deleted the agent ${firstLine(node.label, 40)}`);
			navigate(paths.run(node.runId));
		},
	});
	return (
		<ConfirmDialog
			title={`Delete the agent “${firstLine(node.label, 40)}”?`}
			verb="Delete the agent"
			isOpen={isOpen}
			isPending={remove.isPending}
			blocked={block}
			error={remove.error}
			onClose={onClose}
			onConfirm={() => remove.mutate()}
		>
			<p>
				Its program ends and its connections go. Its open approvals are denied, and handoffs that wait for it go back to
				their senders.
			</p>
			<p>Its files and its transcript stay.</p>
		</ConfirmDialog>
	);
}

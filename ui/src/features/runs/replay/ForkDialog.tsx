/** Makes another run that shares the past of this one up to a moment. */

import { useMutation } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../../api/connection";
import { answer, api } from "../../../api/http";
import { idempotent, useFormKey } from "../../../api/idempotency";
import { paths } from "../../../app/paths";
import { Button } from "../../../components/Button";
import { Dialog } from "../../../components/Dialog";
import { ErrorNote } from "../../../components/ErrorNote";
import { TextField } from "../../../components/Field";
import { toast } from "../../../components/toasts";
import { useFormDraft } from "../../../components/useFormDraft";

export interface ForkDialogProps {
	readonly runId: string;
	readonly seq: number;
	readonly title: string;
	readonly onClose: () => void;
}

export function ForkDialog({ runId, seq, title, onClose }: ForkDialogProps) {
	const initial = { name: `${title}, from event ${seq}`.slice(0, 120) };
	const { form: fields, set, clear } = useFormDraft(`run-fork:${runId}:${seq}`, initial);
	const block = useActionBlock();
	const form = useFormKey();
	const fork = useMutation({
		mutationFn: () => {
			const params = { path: { run_id: runId } };
			const name = fields.name.trim();
			const body = { seq, ...(name === "" ? {} : { title: name }) };
			return answer(api.POST("/api/runs/{run_id}/fork", { params, headers: idempotent(form.key), body }));
		},
		onSuccess({ run }) {
			clear();
			toast("The fork is paused: look at it, then resume it");
			navigate(paths.run(run.id));
		},
		onError: form.renewIfRefused,
	});
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (block === null && !fork.isPending) fork.mutate();
	};
	return (
		<Dialog title={`Fork from event ${seq}`} isOpen onClose={onClose}>
			<form onSubmit={submit}>
				<TextField
					label="Title of the fork"
					value={fields.name}
					onChange={(event) => set({ name: event.target.value })}
				/>
				<p>
					The fork is a new run, paused, with the same agents and the same past up to here. Their programs begin new
					sessions and new worktrees; inputs of open turns wait again, and open approvals are denied. This run stays as
					it is.
				</p>
				<p>In the middle of a decision, the fork begins at the end of the decision before.</p>
				{fork.error !== null && <ErrorNote context="No fork was made." error={fork.error} />}
				<p>
					<Button type="submit" look="primary" icon="fork" blocked={block} isPending={fork.isPending}>
						Make the fork
					</Button>
				</p>
			</form>
		</Dialog>
	);
}

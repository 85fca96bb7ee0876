/** What a run was begun with and may be changed: its goal, its commands, its budget and how many turns it may have open. */

import type { FormEvent } from "react";
import { useActionBlock } from "../../../api/connection";
import { Button } from "../../../components/Button";
import { Dialog } from "../../../components/Dialog";
import { ErrorNote } from "../../../components/ErrorNote";
import { TextArea, TextField } from "../../../components/Field";
import { toast } from "../../../components/toasts";
import { useFormDraft } from "../../../components/useFormDraft";
import type { RunFields } from "../../../model/run";
import { changeOf, faultOf, runForm } from "../../../model/run-form";
import { useRunChange } from "./useRunActions";

export interface RunSettingsProps {
	readonly run: RunFields;
	readonly onClose: () => void;
}

export function RunSettingsDialog({ run, onClose }: RunSettingsProps) {
	const now = runForm(run);
	const { form, set, clear, isChanged } = useFormDraft(`run-settings:${run.id}`, now);
	const block = useActionBlock();
	const change = useRunChange(run.id);
	const body = changeOf(now, form);
	const why = block ?? faultOf(form) ?? (Object.keys(body).length === 0 ? "Nothing was changed yet" : null);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (why !== null || change.isPending) return;
		const onSuccess = () => {
			clear();
			toast("The settings of the run hold from the next turn on");
			onClose();
		};
		change.mutate(body, { onSuccess });
	};
	return (
		<Dialog title="Settings of the run" isOpen onClose={onClose} width="wide">
			<form onSubmit={submit}>
				<TextField label="Title" value={form.title} onChange={(event) => set({ title: event.target.value })} />
				<TextArea label="Goal" rows={3} value={form.goal} onChange={(event) => set({ goal: event.target.value })} />
				<TextArea
					label="Verification"
					hint="Commands that must pass before the run is complete, one a line."
					rows={2}
					value={form.verify}
					onChange={(event) => set({ verify: event.target.value })}
				/>
				<TextArea
					label="Setup"
					hint="Commands that run once in each new worktree, one a line."
					rows={2}
					value={form.setup}
					onChange={(event) => set({ setup: event.target.value })}
				/>
				<TextField
					label="Budget, tokens"
					hint="Empty is no limit. When it is used up, the run is paused."
					inputMode="numeric"
					value={form.tokens}
					onChange={(event) => set({ tokens: event.target.value.trim() })}
				/>
				<TextField
					label="Budget, US dollars"
					inputMode="decimal"
					value={form.dollars}
					onChange={(event) => set({ dollars: event.target.value.trim() })}
				/>
				<TextField
					label="Turns that may be open at once"
					inputMode="numeric"
					value={form.turns}
					onChange={(event) => set({ turns: event.target.value.trim() })}
				/>
				{change.error !== null && <ErrorNote context="Nothing was changed." error={change.error} />}
				<Button type="submit" look="primary" blocked={why} isPending={change.isPending}>
					Change the settings
				</Button>{" "}
				{isChanged && <Button onClick={clear}>Undo the changes</Button>}
			</form>
		</Dialog>
	);
}

/** The form of an agent's settings. It sends only what was changed, and keeps it until then. */

import { useMutation, useQuery } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { useActionBlock } from "../../../api/connection";
import { answer, api } from "../../../api/http";
import { providersQuery } from "../../../api/queries";
import { Button } from "../../../components/Button";
import { ErrorNote } from "../../../components/ErrorNote";
import { Checkbox, SelectField, TextArea, TextField } from "../../../components/Field";
import { toast } from "../../../components/toasts";
import { useFormDraft } from "../../../components/useFormDraft";
import { type AgentDraft, changesOf, draftOf } from "../../../model/agent-draft";
import { formatNumberOf } from "../../../model/quantity";
import type { RunNode } from "../../../model/run";
import css from "./Settings.module.css";

export function AgentForm({ node }: { readonly node: RunNode }) {
	const { form: draft, set, clear } = useFormDraft(`agent-settings:${node.runId}:${node.id}`, draftOf(node));
	const block = useActionBlock();
	const changes = changesOf(node, draft);
	const count = Object.keys(changes.fields).length;
	const save = useMutation({
		mutationFn: () =>
			answer(
				api.PATCH("/api/runs/{run_id}/nodes/{id}", {
					params: { path: { run_id: node.runId, id: node.id } },
					body: changes.fields,
				}),
			),
		onSuccess: () => {
			clear();
			toast("The settings were saved. They hold from the next turn on.");
		},
	});
	const reason = block ?? changes.error ?? (count === 0 ? "Nothing was changed" : null);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (reason === null && !save.isPending) save.mutate();
	};
	return (
		<form className={css.form} onSubmit={submit}>
			<Names draft={draft} set={set} />
			<Rights draft={draft} set={set} />
			<TextArea
				label="Role in your own words"
				hint="Replaces the text of the role. Empty: the role’s own text."
				rows={5}
				value={draft.customSystemPrompt}
				onChange={(event) => set({ customSystemPrompt: event.currentTarget.value })}
			/>
			<div className={css.row}>
				<Button type="submit" look="primary" blocked={reason} isPending={save.isPending}>
					{count === 0 ? "Save" : `Save ${formatNumberOf(count, "change")}`}
				</Button>
				{count > 0 && <Button onClick={clear}>Undo the changes</Button>}
				{changes.error !== null && <span className={css.error}>{changes.error}</span>}
			</div>
			{save.error !== null && <ErrorNote context="The settings were not changed." error={save.error} />}
		</form>
	);
}

interface PartProps {
	readonly draft: AgentDraft;
	readonly set: (fields: Partial<AgentDraft>) => void;
}

function Names({ draft, set }: PartProps) {
	return (
		<>
			<TextField label="Name" value={draft.label} onChange={(event) => set({ label: event.currentTarget.value })} />
			<TextField
				label="Alias"
				hint="A short name that other agents use. Unique in the run."
				value={draft.alias}
				onChange={(event) => set({ alias: event.currentTarget.value })}
			/>
			<TextField
				label="Role"
				hint="orchestrator, planner, implementer, reviewer, tester, docs, or one of yours."
				value={draft.roleTemplate}
				onChange={(event) => set({ roleTemplate: event.currentTarget.value })}
			/>
			<ProgramField draft={draft} set={set} />
			<SelectField
				label="Begins a turn"
				value={draft.wakeOn}
				options={[
					{ value: "any", label: "when anything arrives" },
					{ value: "all", label: "when all replies that it waits for have arrived" },
				]}
				onChange={(wakeOn) => set({ wakeOn })}
			/>
			<div className={css.pair}>
				<TextField
					label="Budget in tokens"
					inputMode="numeric"
					hint="Empty: no limit of its own."
					value={draft.tokens}
					onChange={(event) => set({ tokens: event.currentTarget.value })}
				/>
				<TextField
					label="Budget in dollars"
					inputMode="decimal"
					value={draft.costUsd}
					onChange={(event) => set({ costUsd: event.currentTarget.value })}
				/>
			</div>
		</>
	);
}

function ProgramField({ draft, set }: PartProps) {
	const { data, error } = useQuery(providersQuery());
	const programs = data ?? [];
	const known = programs.some(({ name }) => name === draft.program);
	const options = [
		...(known ? [] : [{ value: draft.program, label: draft.program }]),
		...programs.map(({ name, found }) => ({ value: name, label: found ? name : `${name} (not found)` })),
	];
	const hint = programs.find(({ name }) => name === draft.program)?.hint ?? null;
	return (
		<>
			<SelectField
				label="Program"
				hint={hint ?? "Another program begins with a new session."}
				value={draft.program}
				options={options}
				onChange={(program) => set({ program })}
			/>
			{error !== null && <ErrorNote context="The programs of this machine are not known." error={error} />}
		</>
	);
}

function Rights({ draft, set }: PartProps) {
	const { rights } = draft;
	const right = (name: keyof AgentDraft["rights"], label: string) => (
		<Checkbox label={label} isOn={rights[name]} onChange={(isOn) => set({ rights: { ...rights, [name]: isOn } })} />
	);
	return (
		<fieldset className={css.rights}>
			<legend>Rights</legend>
			{right("writeCode", "write code")}
			{right("writeDocs", "write documents")}
			{right("runCommands", "run commands")}
			{right("spawnNodes", "make agents")}
			{right("delegateOnly", "only delegate: write nothing")}
			{right("spawnRequiresApproval", "making agents needs your approval")}
			{right("asks", "ask you before it uses a tool, where the program can")}
		</fieldset>
	);
}

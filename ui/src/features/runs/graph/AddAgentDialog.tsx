/** Adds an agent to the run: who it is, which program it runs on, and who hands work to it. */

import { useQuery } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { useActionBlock } from "../../../api/connection";
import { answer, api } from "../../../api/http";
import { keys } from "../../../api/keys";
import { providersQuery } from "../../../api/queries";
import { Button } from "../../../components/Button";
import { Dialog } from "../../../components/Dialog";
import { ErrorNote } from "../../../components/ErrorNote";
import { SelectField, TextArea, TextField } from "../../../components/Field";
import { toast } from "../../../components/toasts";
import { useFormDraft } from "../../../components/useFormDraft";
import type { Schema } from "../../../model/schema";
import { firstLine } from "../../../model/text-safety";
import { useAgentNames } from "./useAgentNames";
import { useNodeCreate } from "./useRunActions";

export interface AddAgentDialogProps {
	readonly runId: string;
	readonly onClose: () => void;
	readonly onAdded: (id: string) => void;
}

interface Fields {
	readonly label: string;
	readonly alias: string;
	readonly role: string;
	readonly program: string | null;
	readonly from: string | null;
	readonly instructions: string;
}

const EMPTY: Fields = { label: "", alias: "", role: "implementer", program: null, from: null, instructions: "" };

export function AddAgentDialog({ runId, onClose, onAdded }: AddAgentDialogProps) {
	const { form: fields, set, clear } = useFormDraft(`add-agent:${runId}`, EMPTY);
	const providers = useQuery(providersQuery());
	const names = useAgentNames();
	const block = useActionBlock();
	const create = useNodeCreate(runId);
	const programs = providers.data ?? [];
	const program =
		programs.find(({ name }) => name === fields.program) ?? programs.find(({ found }) => found) ?? programs[0];
	const from = fields.from ?? names.leader ?? "";
	const why =
		block ?? (fields.label.trim() === "" ? "Give it a name" : program === undefined ? "No program is known" : null);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (why !== null || create.isPending || program === undefined) return;
		const onSuccess = (node: Schema<"NodeView">) => {
			clear();
			toast(`Added ${firstLine(node.label, 40)}`);
			onAdded(node.id);
			onClose();
		};
		create.mutate({ node: bodyOf(fields, program), from: from === "" ? null : from }, { onSuccess });
	};
	return (
		<Dialog title="Add an agent" isOpen onClose={onClose}>
			<form onSubmit={submit}>
				<TextField
					label="Name"
					value={fields.label}
					autoComplete="off"
					onChange={(event) => set({ label: event.target.value })}
				/>
				<TextField
					label="Alias (optional)"
					hint="A short name by which other agents call it: letters, digits, - and _."
					value={fields.alias}
					autoComplete="off"
					onChange={(event) => set({ alias: event.target.value })}
				/>
				<RoleField value={fields.role} onChange={(role) => set({ role })} />
				<SelectField
					label="Program"
					hint={programHint(program)}
					value={program?.name ?? ""}
					options={programs.map(({ name, found }) => ({ value: name, label: found ? name : `${name} (not found)` }))}
					onChange={(name) => set({ program: name })}
				/>
				{names.all.size > 0 && (
					<SelectField
						label="Gets work from"
						value={from}
						options={[
							{ value: "", label: "nobody yet" },
							...[...names.all].map(([value, label]) => ({ value, label })),
						]}
						onChange={(id) => set({ from: id })}
					/>
				)}
				<TextArea
					label="Instructions (optional)"
					hint="Instead of the text of its role."
					rows={3}
					value={fields.instructions}
					onChange={(event) => set({ instructions: event.target.value })}
				/>
				{create.error !== null && <ErrorNote context="The agent was not added completely." error={create.error} />}
				<Button type="submit" look="primary" blocked={why} isPending={create.isPending}>
					Add agent
				</Button>
			</form>
		</Dialog>
	);
}

function RoleField({ value, onChange }: { readonly value: string; readonly onChange: (role: string) => void }) {
	const roles = useQuery({
		queryKey: keys.system("roles"),
		queryFn: async ({ signal }) => (await answer(api.GET("/api/roles", { signal }))).roles,
	});
	const known = (roles.data ?? []).map(({ name }) => name);
	const options = (known.includes(value) ? known : [value, ...known]).map((name) => ({ value: name, label: name }));
	return <SelectField label="Role" value={value} options={options} onChange={onChange} />;
}

function programHint(program: Schema<"ProviderHealth"> | undefined): string {
	if (program === undefined) return "The server knows no program yet.";
	if (!program.found) return program.hint ?? "It was not found on the server's machine.";
	if (program.loggedIn === false) return program.hint ?? "It was found, but is not logged in.";
	return [program.version ?? "found", program.loggedIn === true ? "logged in" : null].filter(Boolean).join(" · ");
}

function bodyOf(fields: Fields, program: Schema<"ProviderHealth">): Schema<"CreateNode"> {
	return {
		label: fields.label.trim(),
		roleTemplate: fields.role,
		provider: program.provider,
		...(program.provider === "custom" ? { providerName: program.name } : {}),
		...(fields.alias.trim() === "" ? {} : { alias: fields.alias.trim() }),
		...(fields.instructions.trim() === "" ? {} : { customSystemPrompt: fields.instructions }),
	};
}

/** Adds a person to a ledger, or changes what is known about one. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { idempotent, useFormKey } from "../../api/idempotency";
import { keys } from "../../api/keys";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { Checkbox, TextField } from "../../components/Field";
import { toast } from "../../components/toasts";
import { useFormDraft } from "../../components/useFormDraft";
import { nameFault, type PersonFields, personBody } from "../../model/new-ledger";
import type { Schema } from "../../model/schema";
import { firstLine } from "../../model/text-safety";
import css from "./Ledgers.module.css";
import { ledgerError } from "./ledger-error";

export interface PersonDialogProps {
	readonly world: string;
	/** Null for a new one. */
	readonly person: Schema<"Person"> | null;
	readonly onClose: () => void;
}

export function PersonDialog({ world, person, onClose }: PersonDialogProps) {
	const key = `person:${world}/${person?.person_id ?? ""}`;
	const { form, set, clear, isChanged } = useFormDraft(key, fieldsOf(person));
	const { id, label, aliases, identity, isHuman } = form;
	const save = useSavePerson(world, () => {
		clear();
		onClose();
	});
	const block = useActionBlock();
	const why = block ?? nameFault(id);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (why === null && !save.isPending) save.mutate(personBody(form));
	};
	const title = person === null ? "Add a person" : `Change ${firstLine(person.display_label ?? id)}`;
	return (
		<Dialog title={title} isOpen onClose={onClose}>
			<form onSubmit={submit}>
				<TextField
					label="Id"
					value={id}
					readOnly={person !== null}
					spellCheck={false}
					autoComplete="off"
					hint={person === null ? "Such as CODER. It cannot be changed later." : "It cannot be changed."}
					onChange={(event) => set({ id: event.target.value.trim() })}
				/>
				<TextField
					label="Name that others see"
					value={label}
					placeholder={id}
					hint="Entries keep the name that their author had."
					onChange={(event) => set({ label: event.target.value })}
				/>
				<TextField
					label="Other names"
					value={aliases}
					hint="Names by which texts call this person, with commas between them."
					onChange={(event) => set({ aliases: event.target.value })}
				/>
				<TextField
					label="Who that is, in one line"
					value={identity}
					onChange={(event) => set({ identity: event.target.value })}
				/>
				<Checkbox label="This is a human" isOn={isHuman} onChange={(isOn) => set({ isHuman: isOn })} />
				{save.error !== null && <ErrorNote context="Nothing was changed." error={ledgerError(save.error)} />}
				<p className={css.buttons}>
					<Button type="submit" look="primary" blocked={why} isPending={save.isPending}>
						{person === null ? `Add ${id === "" ? "the person" : id}` : `Change ${id}`}
					</Button>
					{isChanged && <Button onClick={clear}>{person === null ? "Empty the form" : "Undo the changes"}</Button>}
				</p>
			</form>
		</Dialog>
	);
}

function fieldsOf(person: Schema<"Person"> | null): PersonFields {
	return {
		id: person?.person_id ?? "",
		label: person?.display_label ?? "",
		aliases: (person?.aliases ?? []).join(", "),
		identity: person?.identity ?? "",
		isHuman: person?.human ?? false,
	};
}

function useSavePerson(world: string, onSaved: () => void) {
	const form = useFormKey();
	const client = useQueryClient();
	return useMutation({
		mutationFn: (body: Schema<"Person">) => {
			const params = { path: { world } };
			return answer(api.POST("/v1/worlds/{world}/persons", { params, body, headers: idempotent(form.key) }));
		},
		onSuccess({ person_id }) {
			void client.invalidateQueries({ queryKey: keys.world(world) });
			void client.invalidateQueries({ queryKey: keys.worlds() });
			toast(`Saved ${person_id}`);
			onSaved();
		},
		onError: form.renewIfRefused,
	});
}

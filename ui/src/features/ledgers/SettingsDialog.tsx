/** What can be changed of a ledger. Its name, its kind and its clock are fixed. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { Checkbox, SelectField, TextField } from "../../components/Field";
import { toast } from "../../components/toasts";
import { useFormDraft } from "../../components/useFormDraft";
import type { Ledger } from "../../model/ledger";
import { changedSettings, settingsOf } from "../../model/new-ledger";
import css from "./Ledgers.module.css";
import { ledgerError } from "./ledger-error";

export interface SettingsDialogProps {
	readonly world: string;
	readonly ledger: Ledger;
	readonly onClose: () => void;
}

export function SettingsDialog({ world, ledger, onClose }: SettingsDialogProps) {
	const { form: wanted, set, clear, isChanged } = useFormDraft(`ledger-settings:${world}`, settingsOf(ledger));
	const block = useActionBlock();
	const client = useQueryClient();
	const body = changedSettings(ledger, wanted);
	const change = useMutation({
		mutationFn: () => answer(api.PATCH("/v1/worlds/{world}", { params: { path: { world } }, body })),
		onSuccess() {
			void client.invalidateQueries({ queryKey: keys.world(world) });
			void client.invalidateQueries({ queryKey: keys.worlds() });
			clear();
			toast(`Changed the settings of ${world}`);
			onClose();
		},
	});
	const why = block ?? (Object.keys(body).length === 0 ? "Nothing was changed" : null);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (why === null && !change.isPending) change.mutate();
	};
	return (
		<Dialog title={`Settings of ${world}`} isOpen onClose={onClose} width="wide">
			<form onSubmit={submit}>
				<div className={css.columns}>
					<TextField
						label="Your label"
						value={wanted.operator_label}
						hint="What others see where you write."
						onChange={(event) => set({ operator_label: event.target.value })}
					/>
					<TextField
						label="Time zone"
						value={wanted.timezone}
						hint="Such as Europe/Berlin; from now on."
						onChange={(event) => set({ timezone: event.target.value.trim() })}
					/>
					<SelectField
						label="Who may take part"
						value={wanted.registry}
						options={[
							{ value: "CLOSED", label: "only people who were added" },
							{ value: "OPEN", label: "any name that is used" },
						]}
						onChange={(registry) => set({ registry })}
					/>
					<TextField
						label="Attached writer"
						value={wanted.writer}
						spellCheck={false}
						hint="“silence”, or “cmd: PROGRAM ARGUMENTS”: a program that answers when you write."
						onChange={(event) => set({ writer: event.target.value })}
					/>
				</div>
				<p>
					<Checkbox
						label="Show the calendar and the messages"
						isOn={wanted.pocket_available}
						onChange={(pocket_available) => set({ pocket_available })}
					/>
				</p>
				{change.error !== null && <ErrorNote context="Nothing was changed." error={ledgerError(change.error)} />}
				<p className={css.buttons}>
					<Button type="submit" look="primary" blocked={why} isPending={change.isPending}>
						Change the settings
					</Button>
					{isChanged && <Button onClick={clear}>Undo the changes</Button>}
				</p>
			</form>
		</Dialog>
	);
}

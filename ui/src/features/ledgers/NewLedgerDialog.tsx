/** The form of a new ledger. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { idempotent, useFormKey } from "../../api/idempotency";
import { keys } from "../../api/keys";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { SelectField, TextArea, TextField } from "../../components/Field";
import { useFormDraft } from "../../components/useFormDraft";
import { EMPTY_LEDGER, ledgerBody, nameFault } from "../../model/new-ledger";
import css from "./Ledgers.module.css";
import { ledgerError } from "./ledger-error";

export function NewLedgerDialog({ onClose }: { readonly onClose: () => void }) {
	const { form: ledger, set, clear } = useFormDraft("new-ledger", EMPTY_LEDGER);
	const block = useActionBlock();
	const form = useFormKey();
	const client = useQueryClient();
	const make = useMutation({
		mutationFn: () => answer(api.POST("/v1/worlds", { body: ledgerBody(ledger), headers: idempotent(form.key) })),
		onSuccess({ world_id }) {
			clear();
			void client.invalidateQueries({ queryKey: keys.worlds() });
			navigate(paths.ledger(world_id));
		},
		onError: form.renewIfRefused,
	});
	const why = block ?? nameFault(ledger.name);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (why === null && !make.isPending) make.mutate();
	};
	return (
		<Dialog title="Open a new ledger" isOpen onClose={onClose} width="wide">
			<form onSubmit={submit}>
				<div className={css.columns}>
					<TextField
						label="Name"
						value={ledger.name}
						spellCheck={false}
						autoComplete="off"
						hint="Letters, digits, “_”, “.” and “-”. It cannot be changed later."
						onChange={(event) => set({ name: event.target.value.trim() })}
					/>
					<SelectField
						label="For"
						value={ledger.profile}
						options={[
							{ value: "WORKSPACE", label: "a team: real time, added people" },
							{ value: "NARRATIVE", label: "a story: own clock, any name" },
						]}
						hint="Whose clock, and who may take part. The kind of clock stays."
						onChange={(profile) => set({ profile })}
					/>
				</div>
				<TextArea
					label="People"
					rows={4}
					value={ledger.people}
					spellCheck={false}
					hint="One a line: a short id, then, if you like, the name that others see. “coder Ann from the shop”. More can be added later."
					onChange={(event) => set({ people: event.target.value })}
				/>
				<details className={css.more}>
					<summary>Your label, time zone, attached writer</summary>
					<div className={css.columns}>
						<TextField
							label="Your label"
							value={ledger.operatorLabel}
							placeholder="Operator"
							hint="What others see where you write."
							onChange={(event) => set({ operatorLabel: event.target.value })}
						/>
						<TextField
							label="Time zone"
							value={ledger.timezone}
							placeholder="UTC"
							hint="Such as Europe/Berlin."
							onChange={(event) => set({ timezone: event.target.value.trim() })}
						/>
						<TextField
							label="Attached writer"
							value={ledger.writer}
							placeholder="silence"
							spellCheck={false}
							hint="A program that answers when you write: “cmd: PROGRAM ARGUMENTS”. “silence” adds nothing."
							onChange={(event) => set({ writer: event.target.value })}
						/>
					</div>
				</details>
				{make.error !== null && <ErrorNote context="No ledger was made." error={ledgerError(make.error)} />}
				<Button type="submit" look="primary" blocked={why} isPending={make.isPending}>
					{ledger.name === "" ? "Open the ledger" : `Open the ledger ${ledger.name}`}
				</Button>
			</form>
		</Dialog>
	);
}

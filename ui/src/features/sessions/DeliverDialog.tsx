/** Delivers a captured turn: to a session, an agent, the store, the clipboard or a file. */

import type { FormEvent } from "react";
import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../api/connection";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { Checkbox, SelectField, TextField } from "../../components/Field";
import { toast } from "../../components/toasts";
import { useFormDraft } from "../../components/useFormDraft";
import type { Schema } from "../../model/schema";
import { type Session, sessionName } from "../../model/session";
import { safeText } from "../../model/text-safety";
import { AgentFields } from "./AgentFields";
import { type DeliverForm, deliverBody, EMPTY_DELIVERY, missingFrom, SINKS } from "./deliver-form";
import { InjectFields } from "./InjectFields";
import css from "./Sessions.module.css";
import { useDeliver } from "./useSessionActions";

export interface DeliverDialogProps {
	readonly session: Session;
	readonly others: readonly Session[];
	readonly seq: string | null;
	readonly onClose: () => void;
}

export function DeliverDialog({ session, others, seq, onClose }: DeliverDialogProps) {
	const { form, set, clear } = useFormDraft(`deliver:${session.session}:${seq ?? "latest"}`, EMPTY_DELIVERY);
	const deliver = useDeliver(session.session);
	const block = useActionBlock() ?? missingFrom(form);
	const turn = `${safeText(sessionName(session))}${seq === null ? "" : `:${seq}`}`;
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (block !== null || deliver.isPending) return;
		const onSuccess = (done: Schema<"Delivered">) => {
			clear();
			sayDelivered(done, form);
			onClose();
		};
		deliver.mutate(deliverBody(form, seq), { onSuccess });
	};
	const what = seq === null ? `Deliver the latest turn of ${turn}` : `Deliver captured turn ${turn}`;
	return (
		<Dialog title={what} isOpen onClose={onClose}>
			<form onSubmit={submit}>
				<SelectField label="To" value={form.sink} options={SINKS} onChange={(sink) => set({ sink })} />
				{form.sink === "inject" && <InjectFields form={form} sessions={others} onChange={set} />}
				{form.sink === "node" && <AgentFields form={form} onChange={set} />}
				{form.sink === "file" && (
					<TextField
						label="Path"
						hint="A file of this name is replaced."
						value={form.path}
						placeholder="/home/me/answer.txt"
						onChange={(event) => set({ path: event.target.value })}
					/>
				)}
				{form.sink !== "node" && form.sink !== "store" && (
					<Checkbox
						label="Deliver the bytes as captured, with the terminal's control sequences"
						isOn={form.isRaw}
						onChange={(isRaw) => set({ isRaw })}
					/>
				)}
				<p className={css.note}>It is captured first, so it is in the relay buffer afterwards.</p>
				{deliver.error !== null && <ErrorNote context="It was not delivered." error={deliver.error} />}
				<p>
					<Button type="submit" look="primary" blocked={block} isPending={deliver.isPending}>
						{`Deliver ${turn}`}
					</Button>
				</p>
			</form>
		</Dialog>
	);
}

function sayDelivered({ context_id, turn_id }: Schema<"Delivered">, form: DeliverForm): void {
	const place = placeOf(form, context_id, turn_id);
	toast(doneWords(form), place === null ? undefined : { label: "Open", run: () => navigate(place) });
}

function doneWords(form: DeliverForm): string {
	switch (form.sink) {
		case "inject":
			return "Sent to the session's program";
		case "node":
			return "Sent to the agent";
		case "store":
			return "Kept in History";
		case "clipboard":
			return "It is in the clipboard of the server's desktop";
		case "file":
			return `Written to ${form.path}`;
	}
}

/** Where it can be seen now. */
function placeOf(form: DeliverForm, context: string | undefined, turn: string | undefined): string | null {
	switch (form.sink) {
		case "inject":
			return paths.session(form.session);
		case "node":
			return paths.agent(form.run, form.node);
		case "store":
			return context === undefined || turn === undefined ? null : paths.historyTurn(context, turn);
		case "clipboard":
		case "file":
			return null;
	}
}

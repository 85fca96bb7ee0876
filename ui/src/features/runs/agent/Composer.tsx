/** The message box under a timeline. What is typed survives a reload and a lost connection. */

import { type FormEvent, useState } from "react";
import { useActionBlock } from "../../../api/connection";
import { Button } from "../../../components/Button";
import { ErrorNote } from "../../../components/ErrorNote";
import { Checkbox } from "../../../components/Field";
import { useDraft } from "../../../components/useDraft";
import type { RunNode } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";
import { useChat } from "../graph/useRunActions";
import css from "./Timeline.module.css";

export function Composer({ node }: { readonly node: RunNode }) {
	const [text, setText, clear] = useDraft(`chat:${node.runId}:${node.id}`);
	const [interrupts, setInterrupts] = useState(false);
	const block = useActionBlock();
	const send = useChat(node.runId);
	const reason = block ?? (text.trim() === "" ? "There is no text yet" : null);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (reason !== null || send.isPending) return;
		const onSuccess = () => {
			clear();
			setInterrupts(false);
		};
		send.mutate({ content: text, nodeId: node.id, interrupt: interrupts }, { onSuccess });
	};
	const name = firstLine(node.label, 40);
	const isBusy = node.status === "running" || node.status === "blocked";
	return (
		<form className={css.composer} onSubmit={submit}>
			<textarea
				className={css.composerText}
				aria-label={`Message to ${name}`}
				placeholder={`Message to ${name}`}
				value={text}
				rows={2}
				onChange={(event) => setText(event.currentTarget.value)}
				onKeyDown={(event) => {
					if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
				}}
			/>
			<div className={css.composerRow}>
				{isBusy ? (
					<Checkbox label={interruptWords(node)} isOn={interrupts} onChange={setInterrupts} />
				) : (
					<span className={css.soft}>Ctrl-Enter sends it. The agent begins a turn with it.</span>
				)}
				<Button type="submit" look="primary" blocked={reason} isPending={send.isPending}>
					{`Send to ${name}`}
				</Button>
			</div>
			{send.error !== null && <ErrorNote context="The message was not sent; its text is kept." error={send.error} />}
		</form>
	);
}

function interruptWords(node: RunNode): string {
	return node.status === "blocked"
		? "Deny what waits for approval, and read this now. Otherwise it waits for the next turn."
		: "Interrupt the turn, and read this now. Otherwise it waits for the next turn.";
}

/** A message to an agent of the run. Without a choice it goes to the agent that leads. */

import { type FormEvent, useState } from "react";
import { useActionBlock } from "../../../api/connection";
import { Button } from "../../../components/Button";
import { ErrorNote } from "../../../components/ErrorNote";
import { Checkbox } from "../../../components/Field";
import { toast } from "../../../components/toasts";
import { useDraft } from "../../../components/useDraft";
import type { RunNode } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";
import css from "./ChatBox.module.css";
import { useRun } from "./run-source";
import { useAgentNames } from "./useAgentNames";
import { useChat } from "./useRunActions";

export interface ChatBoxProps {
	readonly runId: string;
	/** The agent that gets it; without one the writer chooses. */
	readonly agent: string | null;
}

export function ChatBox({ runId, agent }: ChatBoxProps) {
	const names = useAgentNames();
	const [chosen, setChosen] = useState<string | null>(null);
	const [isInterrupting, setInterrupting] = useState(false);
	const block = useActionBlock();
	const send = useChat(runId);
	const receiver = agent ?? [chosen, names.leader].find((id) => id !== null && names.all.has(id)) ?? null;
	const [text, setText, clear] = useDraft(`chat:${runId}:${agent ?? "run"}`);
	const status = useRun((state) => (receiver === null ? undefined : state.nodes[receiver]?.status));
	const why = block ?? whyNot(names.all.size, receiver, text);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (why !== null || send.isPending || receiver === null) return;
		const onSuccess = () => {
			clear();
			setInterrupting(false);
			toast(`Sent to ${names.all.get(receiver)}`);
		};
		send.mutate({ content: text, nodeId: receiver, interrupt: isInterrupting }, { onSuccess });
	};
	const receiverName = receiver === null ? "an agent" : (names.all.get(receiver) ?? "an agent");
	return (
		<form className={css.box} onSubmit={submit} aria-label="Message">
			<textarea
				className={css.text}
				rows={2}
				aria-label={`Message to ${receiverName}`}
				placeholder={`Message to ${receiverName}; Ctrl-Enter sends it`}
				value={text}
				onChange={(event) => setText(event.target.value)}
				onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event)}
			/>
			<div className={css.row}>
				{agent === null && <Receiver names={names.all} value={receiver} onChange={setChosen} />}
				{(status === "running" || status === "blocked") && (
					<Checkbox label={interruptWords(status)} isOn={isInterrupting} onChange={setInterrupting} />
				)}
			</div>
			<Button type="submit" look="primary" blocked={why} isPending={send.isPending}>
				Send
			</Button>
			{send.error !== null && (
				<div className={css.error}>
					<ErrorNote context="The message was not sent; its text is kept." error={send.error} />
				</div>
			)}
		</form>
	);
}

function whyNot(agents: number, receiver: string | null, text: string): string | null {
	if (agents === 0) return "The run has no agent yet: add one first";
	if (receiver === null) return "Choose the agent that gets it";
	return text.trim() === "" ? "There is nothing to send yet" : null;
}

function interruptWords(status: RunNode["status"]): string {
	return status === "blocked" ? "deny what it waits for, and say this now" : "interrupt its turn and say this now";
}

interface ReceiverProps {
	readonly names: ReadonlyMap<string, string>;
	readonly value: string | null;
	readonly onChange: (id: string | null) => void;
}

function Receiver({ names, value, onChange }: ReceiverProps) {
	return (
		<label className={css.to}>
			To
			<select value={value ?? ""} onChange={(event) => onChange(event.target.value || null)}>
				{value === null && <option value="">choose an agent</option>}
				{[...names].map(([id, name]) => (
					<option key={id} value={id}>
						{firstLine(name, 40)}
					</option>
				))}
			</select>
		</label>
	);
}

/** Denies a call with words that the agent reads, and stops its turn if asked to. */

import { useState } from "react";
import { Button } from "../../components/Button";
import { Checkbox, TextArea } from "../../components/Field";
import { useDraft } from "../../components/useDraft";
import type { AnswerFormProps } from "./answer-form";
import css from "./Inbox.module.css";

export function DenyForm({ approval, block, isPending, onSend, onClose }: AnswerFormProps) {
	const [reason, setReason] = useDraft(`deny:${approval.approvalId}`);
	const [isStopping, setStopping] = useState(false);
	const deny = () =>
		onSend({ status: "denied", interrupt: isStopping, ...(reason.trim() === "" ? {} : { reason: reason.trim() }) });
	return (
		<div className={css.form}>
			<TextArea
				label="Why not, and what to do instead? The agent reads it."
				value={reason}
				rows={3}
				onChange={(event) => setReason(event.currentTarget.value)}
			/>
			<Checkbox label="Stop the agent's turn too" isOn={isStopping} onChange={setStopping} />
			<div className={css.answers}>
				<Button look="primary" blocked={block} isPending={isPending} onClick={deny}>
					{isStopping ? "Deny and stop" : "Deny"}
				</Button>
				<Button onClick={onClose}>Cancel</Button>
			</div>
		</div>
	);
}

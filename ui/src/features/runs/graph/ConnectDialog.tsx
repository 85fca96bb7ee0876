/** Connects two agents: by ports, by `c` or from the list, the question is the same. */

import { type FormEvent, useState } from "react";
import { useActionBlock } from "../../../api/connection";
import { Button } from "../../../components/Button";
import { Dialog } from "../../../components/Dialog";
import { ErrorNote } from "../../../components/ErrorNote";
import { Checkbox, SelectField, TextField } from "../../../components/Field";
import { toast } from "../../../components/toasts";
import { useDraft } from "../../../components/useDraft";
import { useAgentNames } from "./useAgentNames";
import { useEdgeCreate } from "./useRunActions";

export interface ConnectDialogProps {
	readonly runId: string;
	readonly from: string;
	readonly to: string | null;
	readonly onClose: () => void;
}

export function ConnectDialog({ runId, from, to, onClose }: ConnectDialogProps) {
	const names = useAgentNames();
	const [target, setTarget] = useState(to ?? "");
	const [label, setLabel, clearLabel] = useDraft(`connect:${runId}:${from}`);
	const [isBothWays, setBothWays] = useState(true);
	const [isChecked, setChecked] = useState(false);
	const block = useActionBlock();
	const create = useEdgeCreate(runId);
	const fromName = names.all.get(from) ?? "an agent that is gone";
	const others = [...names.all].filter(([id]) => id !== from).map(([value, name]) => ({ value, label: name }));
	const why = block ?? (target === "" || target === from ? "Choose the other agent" : null);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (why !== null || create.isPending) return;
		const onSuccess = () => {
			clearLabel();
			toast(`Connected ${fromName} with ${names.all.get(target) ?? "the agent"}`);
			onClose();
		};
		const more = label.trim() === "" ? {} : { label: label.trim() };
		create.mutate({ from, to: target, bidirectional: isBothWays, gate: isChecked, ...more }, { onSuccess });
	};
	return (
		<Dialog title={`Connect ${fromName}`} isOpen onClose={onClose}>
			<form onSubmit={submit}>
				<SelectField
					label="Hands work to"
					value={target}
					options={[{ value: "", label: "choose an agent" }, ...others]}
					onChange={setTarget}
				/>
				<TextField
					label="Label (optional)"
					hint="What it hands over, such as “task” or “review”."
					value={label}
					onChange={(event) => setLabel(event.target.value)}
				/>
				<Checkbox label="Both may hand work to each other" isOn={isBothWays} onChange={setBothWays} />
				<Checkbox label="Run the verification before a success is delivered" isOn={isChecked} onChange={setChecked} />
				{create.error !== null && <ErrorNote context="They were not connected." error={create.error} />}
				<p>
					<Button type="submit" look="primary" blocked={why} isPending={create.isPending}>
						Connect
					</Button>
				</p>
			</form>
		</Dialog>
	);
}

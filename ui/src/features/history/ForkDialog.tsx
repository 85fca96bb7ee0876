/** Makes a history that starts from a turn. Nothing is copied. */

import { useMutation } from "@tanstack/react-query";
import type { FormEvent } from "react";
import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { useFormKey } from "../../api/idempotency";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { TextArea } from "../../components/Field";
import { toast } from "../../components/toasts";
import { useDraft } from "../../components/useDraft";
import { readLabels } from "../../model/history";

export function ForkDialog({ turn, onClose }: { readonly turn: string; readonly onClose: () => void }) {
	const [text, setText, clear] = useDraft(`fork:${turn}`);
	const form = useFormKey();
	const block = useActionBlock();
	const { labels, error } = readLabels(text);
	const fork = useMutation({
		mutationFn: () => {
			const body = { base_turn_id: turn, labels, idempotency_key: form.key };
			return answer(api.POST("/v1/contexts/fork", { body }));
		},
		onSuccess: ({ context_id }) => {
			clear();
			toast(`History ${context_id} starts from turn ${turn}`);
			navigate(paths.history(context_id));
		},
		onError: form.renewIfRefused,
	});
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (block === null && error === null && !fork.isPending) fork.mutate();
	};
	return (
		<Dialog title={`Fork from turn ${turn}`} isOpen onClose={onClose}>
			<form onSubmit={submit}>
				<TextArea
					label="Labels of the new history (optional)"
					hint="One key=value a line, such as agent=reviewer. The turns before stay where they are; nothing is copied."
					error={error}
					value={text}
					rows={3}
					onChange={(event) => setText(event.target.value)}
				/>
				{fork.error !== null && <ErrorNote context="No history was made." error={fork.error} />}
				<p>
					<Button type="submit" look="primary" blocked={block ?? error} isPending={fork.isPending}>
						{`Fork from turn ${turn}`}
					</Button>
				</p>
			</form>
		</Dialog>
	);
}

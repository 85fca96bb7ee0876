/** A new role or team: its name and its text. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useActionBlock } from "../../api/connection";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { TextArea, TextField } from "../../components/Field";
import { useDraft } from "../../components/useDraft";
import type { NamedFile, NamedFileStore } from "./named-file";

/** The names that the server takes. */
const NAME = /^[a-z0-9_-]+$/;

export interface NewNamedFileProps extends NamedFileStore {
	readonly taken: readonly NamedFile[];
	readonly onClose: () => void;
	readonly onMade: (name: string) => void;
}

export function NewNamedFile({ noun, format, queryKey, save, taken, onClose, onMade }: NewNamedFileProps) {
	const [name, setName, clearName] = useDraft(`new-${noun}-name`);
	const [text, setText, clearText] = useDraft(`new-${noun}-text`);
	const client = useQueryClient();
	const offline = useActionBlock();
	const making = useMutation({
		mutationFn: () => save(name, text),
		onSuccess: async () => {
			clearName();
			clearText();
			await client.invalidateQueries({ queryKey });
			onMade(name);
			onClose();
		},
	});
	const wrong = nameProblem(name, taken);
	const block = offline ?? wrong ?? (text.trim() === "" ? "Write its text first" : null);
	const actions = (
		<Button look="primary" blocked={block} isPending={making.isPending} onClick={() => making.mutate()}>
			{`Make the ${noun}`}
		</Button>
	);
	return (
		<Dialog title={`New ${noun}`} isOpen onClose={onClose} actions={actions} width="wide">
			<TextField
				label="Name"
				value={name}
				hint="Small letters, digits, - and _"
				error={name === "" ? null : wrong}
				onChange={(event) => setName(event.currentTarget.value)}
			/>
			<TextArea
				label={format}
				value={text}
				rows={14}
				spellCheck={false}
				onChange={(event) => setText(event.currentTarget.value)}
			/>
			{making.error !== null && <ErrorNote context="It was not made." error={making.error} />}
		</Dialog>
	);
}

function nameProblem(name: string, taken: readonly NamedFile[]): string | null {
	if (name === "") return "Give it a name first";
	if (!NAME.test(name)) return "A name has small letters, digits, - and _";
	return taken.some((file) => file.name === name && file.source === "user") ? "There is one of this name" : null;
}

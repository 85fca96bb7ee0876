/** One role or team: its text, to change; deleting a file of yours brings the built-in one of its name back. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useActionBlock } from "../../api/connection";
import { Button } from "../../components/Button";
import { ConfirmDialog } from "../../components/ConfirmDialog";
import { Drawer } from "../../components/Drawer";
import { ErrorNote } from "../../components/ErrorNote";
import { TextArea } from "../../components/Field";
import { toast } from "../../components/toasts";
import { useDraft } from "../../components/useDraft";
import { firstLine } from "../../model/text-safety";
import type { NamedFile, NamedFileStore } from "./named-file";

export interface NamedFileDrawerProps extends NamedFileStore {
	readonly file: NamedFile;
	readonly onClose: () => void;
}

export function NamedFileDrawer({ file, noun, format, queryKey, save, remove, onClose }: NamedFileDrawerProps) {
	const [draft, setDraft, clear] = useDraft(`${noun}:${file.name}`);
	const [isDeleting, setDeleting] = useState(false);
	const client = useQueryClient();
	const offline = useActionBlock();
	const text = draft === "" ? file.text : draft;
	const done = (words: string) => () => {
		clear();
		toast(words);
		void client.invalidateQueries({ queryKey });
	};
	const saving = useMutation({
		mutationFn: () => save(file.name, text),
		onSuccess: done(`Saved the ${noun} ${file.name}`),
	});
	const deleting = useMutation({
		mutationFn: () => remove(file.name),
		onSuccess: () => {
			done(`Deleted your ${noun} ${file.name}`)();
			onClose();
		},
	});
	const verb = file.source === "user" ? `Save the ${noun}` : `Save as a ${noun} of yours`;
	const actions = (
		<>
			<Button
				look="primary"
				blocked={offline ?? (text === file.text ? "Nothing was changed" : null)}
				isPending={saving.isPending}
				onClick={() => saving.mutate()}
			>
				{verb}
			</Button>
			{file.source === "user" && <Button onClick={() => setDeleting(true)}>{`Delete your ${noun}…`}</Button>}
		</>
	);
	return (
		<Drawer title={firstLine(file.name)} onClose={onClose} actions={actions}>
			<TextArea
				label={format}
				value={text}
				rows={24}
				spellCheck={false}
				hint="Agents read it at their next full prompt."
				onChange={(event) => setDraft(event.currentTarget.value)}
			/>
			{saving.error !== null && <ErrorNote context="It was not saved." error={saving.error} />}
			<ConfirmDialog
				title={`Delete your ${noun} “${firstLine(file.name)}”?`}
				verb={`Delete the ${noun}`}
				isOpen={isDeleting}
				isPending={deleting.isPending}
				blocked={offline}
				error={deleting.error}
				onConfirm={() => deleting.mutate()}
				onClose={() => setDeleting(false)}
			>
				<p>Your file goes. A built-in {noun} of the same name counts again. Runs that exist keep their agents.</p>
			</ConfirmDialog>
		</Drawer>
	);
}

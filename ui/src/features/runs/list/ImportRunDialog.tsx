/** Reads a run from a file that `export` made. The server takes all of it or nothing. */

import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../../api/connection";
import { request } from "../../../api/http";
import { idempotent, useFormKey } from "../../../api/idempotency";
import { paths } from "../../../app/paths";
import { Button } from "../../../components/Button";
import { Dialog } from "../../../components/Dialog";
import { ErrorNote } from "../../../components/ErrorNote";
import { Checkbox, TextField } from "../../../components/Field";
import { useDraft } from "../../../components/useDraft";
import type { Schema } from "../../../model/schema";

export function ImportRunDialog({ onClose }: { readonly onClose: () => void }) {
	const [file, setFile] = useState<File | null>(null);
	const [folder, setFolder, clearFolder] = useDraft("import-run:folder");
	const [isCopy, setCopy] = useState(false);
	const block = useActionBlock();
	const form = useFormKey();
	const load = useMutation({
		mutationFn: async (chosen: File) => {
			const query = new URLSearchParams({
				...(isCopy ? { copy: "1" } : {}),
				...(folder === "" ? {} : { cwd: folder }),
			});
			const headers = { ...idempotent(form.key), "content-type": "application/zip" };
			const response = await request(`/api/runs/import?${query}`, { method: "POST", body: chosen, headers });
			return (await response.json()) as Schema<"RunAnswer">;
		},
		onSuccess({ run }) {
			clearFolder();
			navigate(paths.run(run.id));
		},
		onError: form.renewIfRefused,
	});
	const why = block ?? (file === null ? "Choose the file first" : null);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (file !== null && why === null && !load.isPending) load.mutate(file);
	};
	return (
		<Dialog title="Import a run" isOpen onClose={onClose}>
			<form onSubmit={submit}>
				<TextField
					label="File"
					type="file"
					accept=".zip,application/zip"
					hint="The zip file of “Export as a file” or of `turnkeep run export`. Look at its settings before you resume it."
					onChange={(event) => setFile(event.target.files?.[0] ?? null)}
				/>
				<TextField
					label="Directory on the server’s machine (optional)"
					value={folder}
					onChange={(event) => setFolder(event.target.value)}
				/>
				<Checkbox label="Give it a new id, as a copy" isOn={isCopy} onChange={setCopy} />
				{load.error !== null && <ErrorNote context="Nothing was imported." error={load.error} />}
				<p>
					<Button type="submit" look="primary" blocked={why} isPending={load.isPending}>
						Import run
					</Button>
				</p>
			</form>
		</Dialog>
	);
}

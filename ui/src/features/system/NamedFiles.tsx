/** Roles and teams are text files with a name: a list, and a drawer that shows and changes one of them. */

import { useState } from "react";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { Chip } from "../../components/Chip";
import { type Column, DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { SafeText } from "../../components/SafeText";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { unknownWord } from "../../model/unknown-word";
import { NamedFileDrawer } from "./NamedFileDrawer";
import { NewNamedFile } from "./NewNamedFile";
import type { NamedFile, NamedFileStore } from "./named-file";
import { SystemFrame } from "./SystemFrame";

export interface NamedFilesProps extends NamedFileStore {
	readonly page: "roles" | "teams";
	readonly files: readonly NamedFile[] | undefined;
	readonly error: unknown;
}

export function NamedFiles({ page, files, error, ...store }: NamedFilesProps) {
	const [name, setName] = useQueryParam("name");
	const [isNew, setNew] = useState(false);
	const open = files?.find((file) => file.name === name);
	const columns: readonly Column<NamedFile>[] = [
		{ id: "name", header: "Name", minWidth: 120, cell: (file) => <SafeText text={file.name} /> },
		{ id: "source", header: "From", minWidth: 90, cell: (file) => <Chip>{sourceWord(file.source)}</Chip> },
		{
			id: "note",
			header: "What it gives",
			minWidth: 200,
			grow: 1,
			drop: 1,
			cell: (file) => file.note || firstWords(file.text),
		},
	];
	const add = <Button icon="plus" onClick={() => setNew(true)}>{`New ${store.noun}`}</Button>;
	return (
		<SystemFrame page={page} actions={add}>
			{error !== null && <ErrorNote error={error} />}
			{files === undefined && error === null && <Skeleton lines={6} />}
			{files !== undefined && (
				<DataTable
					label={page}
					columns={columns}
					rows={files}
					rowKey={(file) => file.name}
					rowHref={(file) => paths.system(page, { name: file.name })}
				/>
			)}
			{isNew && <NewNamedFile {...store} taken={files ?? []} onClose={() => setNew(false)} onMade={setName} />}
			{open !== undefined && <NamedFileDrawer key={open.name} {...store} file={open} onClose={() => setName(null)} />}
		</SystemFrame>
	);
}

function sourceWord(source: NamedFile["source"]): string {
	switch (source) {
		case "built-in":
			return "built in";
		case "user":
			return "yours";
		case "workspace":
			return "the folder";
		default:
			return unknownWord(source);
	}
}

function firstWords(text: string): string {
	const line = text.split("\n").find((each) => each.trim() !== "" && !each.startsWith("#")) ?? "";
	return line.length > 100 ? `${line.slice(0, 100)}…` : line;
}

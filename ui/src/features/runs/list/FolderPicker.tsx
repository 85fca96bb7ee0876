/** Chooses a directory of the server's machine: typed, or step by step. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { errorWords } from "../../../api/errors";
import { answer, api } from "../../../api/http";
import { keys } from "../../../api/keys";
import { TextField } from "../../../components/Field";
import { Icon } from "../../../components/Icon";
import { SafeText } from "../../../components/SafeText";
import css from "./List.module.css";

export interface FolderPickerProps {
	/** Empty for the home directory. */
	readonly value: string;
	readonly onChange: (path: string) => void;
}

export function FolderPicker({ value, onChange }: FolderPickerProps) {
	const { data, error, isPlaceholderData } = useQuery({
		queryKey: keys.system("fs", value),
		queryFn: ({ signal }) => {
			const query = value === "" ? {} : { path: value };
			return answer(api.GET("/api/fs", { params: { query }, signal }));
		},
		placeholderData: keepPreviousData,
	});
	const folders = (data?.entries ?? []).filter(({ kind }) => kind === "directory");
	const isRepository = data !== undefined && !isPlaceholderData && folders.some(({ name }) => name === ".git");
	return (
		<>
			<TextField
				label="Folder"
				value={value}
				placeholder={data?.path ?? "/home/you/project"}
				spellCheck={false}
				autoComplete="off"
				hint={isRepository ? "A git repository: further writers get worktrees of their own." : hintOf(error)}
				onChange={(event) => onChange(event.target.value)}
			/>
			{data !== undefined && error === null && (
				<ul className={css.listing} aria-label={`Folders in ${data.path}`}>
					{data.parent != null && <Folder name="the folder above" isUp onOpen={() => onChange(data.parent ?? "")} />}
					{folders
						.filter(({ name }) => name !== ".git")
						.map(({ name }) => (
							<Folder key={name} name={name} onOpen={() => onChange(joined(data.path, name))} />
						))}
					{folders.length === 0 && data.parent == null && <li className={css.soft}>There is no folder in it.</li>}
					{data.truncated && <li className={css.soft}>There are more folders: type the path.</li>}
				</ul>
			)}
		</>
	);
}

function hintOf(error: unknown): string {
	if (error === null) return "Where the agents work, on the server’s machine.";
	return `${errorWords(error).what} Folders under your home and the configured roots can be listed.`;
}

function joined(folder: string, name: string): string {
	return folder.endsWith("/") ? `${folder}${name}` : `${folder}/${name}`;
}

interface FolderProps {
	readonly name: string;
	readonly isUp?: boolean;
	readonly onOpen: () => void;
}

function Folder({ name, isUp = false, onOpen }: FolderProps) {
	return (
		<li>
			<button type="button" className={css.folder} onClick={onOpen}>
				<Icon name={isUp ? "back" : "folder"} size={14} />
				<SafeText text={name} />
			</button>
		</li>
	);
}

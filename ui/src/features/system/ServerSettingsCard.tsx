/** The settings that the server started with, by their table of the configuration file, and where each value comes from. */

import { useQuery } from "@tanstack/react-query";
import { Card } from "../../components/Card";
import { type Column, DataTable } from "../../components/DataTable";
import { CommandLine } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { TextField } from "../../components/Field";
import { SafeText } from "../../components/SafeText";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import css from "./System.module.css";
import {
	type ServerSetting,
	type ServerSettings,
	settingGroups,
	settingQuantity,
	settingsQuery,
	settingText,
} from "./server-settings";

export function ServerSettingsCard() {
	const { data, error, isPending, refetch } = useQuery(settingsQuery());
	return (
		<Card title="The server">
			{isPending && <Skeleton lines={6} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data === null && (
				<>
					<p>This server does not show its settings here. This prints them:</p>
					<CommandLine command="turnkeep config show" />
				</>
			)}
			{data != null && <SettingList settings={data} />}
		</Card>
	);
}

function SettingList({ settings: { file, settings } }: { readonly settings: ServerSettings }) {
	const [words, setWords] = useQueryParam("find");
	const groups = settingGroups(settings, words ?? "");
	return (
		<>
			<p>
				The server reads its settings when it starts, from flags, the environment and{" "}
				<code>
					<SafeText text={file} />
				</code>
				. A change needs a restart.
			</p>
			<div className={css.tools}>
				<div className={css.find}>
					<TextField
						label="Find"
						placeholder="part of a name, a value or a source"
						value={words ?? ""}
						onChange={(event) => setWords(event.currentTarget.value, { replace: true })}
					/>
				</div>
			</div>
			{groups.length === 0 && <p role="status">No setting has these words.</p>}
			{groups.map((group) => (
				<section key={group.name} className={css.group} aria-label={`Settings: ${group.name}`}>
					<h3>{group.name}</h3>
					<DataTable label={group.name} columns={COLUMNS} rows={group.settings} rowKey={({ name }) => name} />
				</section>
			))}
		</>
	);
}

const COLUMNS: readonly Column<ServerSetting>[] = [
	{ id: "name", header: "Setting", minWidth: 220, cell: ({ name }) => <code>{name}</code> },
	{ id: "value", header: "Value", minWidth: 120, grow: 1, cell: (setting) => <SettingValue setting={setting} /> },
	{ id: "source", header: "From", minWidth: 150, drop: 1, cell: ({ source }) => <SafeText text={source} /> },
];

function SettingValue({ setting }: { readonly setting: ServerSetting }) {
	const text = settingText(setting.value);
	const quantity = settingQuantity(setting);
	if (text === "") return <span className={css.soft}>not set</span>;
	return (
		<>
			<code>
				<SafeText text={text} />
			</code>
			{quantity !== null && <span className={css.soft}> {quantity}</span>}
		</>
	);
}

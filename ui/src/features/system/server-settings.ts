/** The settings of the server with the source of each value, as `turnkeep config show` prints them. */

import { queryOptions } from "@tanstack/react-query";
import { isNotFound } from "../../api/errors";
import { requestJson } from "../../api/http";
import { keys } from "../../api/keys";
import { formatBytes } from "../../model/quantity";
import { formatDuration } from "../../model/time";

export interface ServerSetting {
	/** `durability`, `limits.blob_bytes_max`. */
	readonly name: string;
	/** A secret is only said to be set. */
	readonly value: unknown;
	/** `default`, `file /etc/turnkeep.toml`, `environment TURNKEEP_HTTP`, `flag --http`. */
	readonly source: string;
}

export interface ServerSettings {
	/** The configuration file, whether it exists or not. */
	readonly file: string;
	readonly settings: readonly ServerSetting[];
}

/** Null from a server that does not show its settings. */
export const settingsQuery = () =>
	queryOptions({
		queryKey: keys.system("settings"),
		queryFn: async ({ signal }): Promise<ServerSettings | null> => {
			try {
				return await requestJson<ServerSettings>("/v1/settings", { signal });
			} catch (error) {
				if (isNotFound(error)) return null;
				throw error;
			}
		},
	});

/** A value as a person writes it; empty where nothing is set. */
export function settingText(value: unknown): string {
	if (value === null || value === undefined) return "";
	if (typeof value === "string") return value;
	return Array.isArray(value) ? value.map(settingText).join(", ") : JSON.stringify(value);
}

/** A number with its unit, where the name says that it counts milliseconds or bytes: "15 min", "32.0 MiB". */
export function settingQuantity({ name, value }: ServerSetting): string | null {
	if (typeof value !== "number") return null;
	if (/_ms(_|$)/.test(name)) return value === 0 ? null : formatDuration(value);
	return value >= 1024 && /bytes|memory/.test(name) ? formatBytes(value) : null;
}

/** What a durability promises, by its name in the settings. */
export function durabilityWords(value: unknown): string {
	switch (value) {
		case "fsync":
			return "fsync: what is acknowledged survives a killed server and a power failure";
		case "os":
			return "os: what is acknowledged survives a killed server, but a power failure may take the last 100 ms";
		default:
			return settingText(value);
	}
}

/** The group of settings that belong to no table. */
const GENERAL = "general";

export interface SettingGroup {
	/** "limits", or "general" for names without a dot. */
	readonly name: string;
	readonly settings: readonly ServerSetting[];
}

/** The settings that have all words, by the table of the configuration file that they belong to. */
export function settingGroups(settings: readonly ServerSetting[], words: string): SettingGroup[] {
	const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
	const groups = new Map<string, ServerSetting[]>();
	for (const setting of settings) {
		const text = `${setting.name} ${settingText(setting.value)} ${setting.source}`.toLowerCase();
		if (!wanted.every((word) => text.includes(word))) continue;
		const name = groupOf(setting.name, settings);
		groups.set(name, [...(groups.get(name) ?? []), setting]);
	}
	return [...groups].map(([name, found]) => ({ name, settings: found }));
}

/** The table of a setting. A setting may be a table of its own, such as `providers` beside `providers.claude`. */
function groupOf(name: string, settings: readonly ServerSetting[]): string {
	const dot = name.indexOf(".");
	if (dot >= 0) return name.slice(0, dot);
	return settings.some((other) => other.name.startsWith(`${name}.`)) ? name : GENERAL;
}

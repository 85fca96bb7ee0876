import { expect, test } from "vitest";
import { durabilityWords, type ServerSetting, settingGroups, settingText } from "./server-settings";

const SETTINGS: readonly ServerSetting[] = [
	{ name: "http", value: "127.0.0.1:9010", source: "default" },
	{ name: "limits.blob_bytes_max", value: 33554432, source: "file /etc/turnkeep.toml" },
	{ name: "allow_host", value: ["a", "b"], source: "flag --allow-host" },
	{ name: "limits.page_turns_max", value: 10000, source: "default" },
];

test("settings are grouped by their table, and found by name, value and source", () => {
	const shape = (words: string) => settingGroups(SETTINGS, words).map(({ name, settings }) => [name, settings.length]);
	expect(shape("")).toEqual([
		["general", 2],
		["limits", 2],
	]);
	expect(shape("Limits default")).toEqual([["limits", 1]]);
	expect(shape("127.0.0.1")).toEqual([["general", 1]]);
	expect(shape("nothing of the kind")).toEqual([]);
});

test("values are said as a person writes them", () => {
	expect([null, "text", 7, true, ["a", "b"], []].map(settingText)).toEqual(["", "text", "7", "true", "a, b", ""]);
	expect(durabilityWords("os")).toMatch(/power failure/);
	expect(durabilityWords("other")).toBe("other");
});

import { expect, test } from "vitest";
import { durabilityWords, type ServerSetting, settingGroups, settingQuantity, settingText } from "./server-settings";

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

test("a table that is a setting too is in its own group", () => {
	const settings = ["providers.claude", "providers", "http"].map((name) => ({ name, value: "", source: "default" }));
	expect(settingGroups(settings, "").map(({ name }) => name)).toEqual(["providers", "general"]);
});

test("numbers of milliseconds and bytes are given their units", () => {
	const quantity = (name: string, value: unknown) => settingQuantity({ name, value, source: "default" });
	expect(quantity("runs.verify_ms_max", 900_000)).toBe("15 min");
	expect(quantity("limits.blob_bytes_max", 32 << 20)).toBe("32.0 MiB");
	expect(quantity("memory_budget", 6_319_127_552)).toBe("5.9 GiB");
	expect(quantity("runs.approval_ms", 0)).toBeNull();
	expect(quantity("runs.nodes_max", 24)).toBeNull();
	expect(quantity("limits.blob_bytes_max", "many")).toBeNull();
});

test("values are said as a person writes them", () => {
	expect([null, "text", 7, true, ["a", "b"], []].map(settingText)).toEqual(["", "text", "7", "true", "a, b", ""]);
	expect(durabilityWords("os")).toMatch(/power failure/);
	expect(durabilityWords("other")).toBe("other");
});

/** What few runs need when they begin: modes, commands, budget. All of it can be changed later. */

import { SelectField, TextArea, TextField } from "../../../components/Field";
import { commandsOf } from "../../../model/run-form";
import type { Schema } from "../../../model/schema";
import css from "./List.module.css";

export interface RunSettings {
	readonly title: string;
	readonly mode: Schema<"RunMode">;
	readonly globalMode: Schema<"GlobalMode">;
	/** One command a line. */
	readonly verify: string;
	readonly setup: string;
	readonly tokens: string;
	readonly dollars: string;
}

export const NO_MORE: RunSettings = {
	title: "",
	mode: "INTERACTIVE",
	globalMode: "IMPLEMENTATION",
	verify: "",
	setup: "",
	tokens: "",
	dollars: "",
};

/** The fields of a request. What is empty is left out, so that the server's own settings apply. */
export function settingsBody(settings: RunSettings): Schema<"CreateRun"> {
	const dollars = Number(settings.dollars);
	const budget = {
		...(settings.tokens === "" ? {} : { tokens: Number(settings.tokens) }),
		...(settings.dollars === "" || !Number.isFinite(dollars) ? {} : { costUsd: dollars }),
	};
	return {
		mode: settings.mode,
		globalMode: settings.globalMode,
		verify: commandsOf(settings.verify),
		setup: commandsOf(settings.setup),
		...(settings.title.trim() === "" ? {} : { title: settings.title.trim() }),
		...(Object.keys(budget).length === 0 ? {} : { budget }),
	};
}

export interface MoreSettingsProps {
	readonly settings: RunSettings;
	readonly onChange: (settings: RunSettings) => void;
}

export function MoreSettings({ settings, onChange }: MoreSettingsProps) {
	const set = (change: Partial<RunSettings>) => onChange({ ...settings, ...change });
	return (
		<details className={css.more}>
			<summary>Modes, verification and budget</summary>
			<div className={css.columns}>
				<SelectField
					label="Mode"
					value={settings.mode}
					options={[
						{ value: "INTERACTIVE", label: "interactive: prompt nobody without input" },
						{ value: "AUTO", label: "auto: prompt the lead until the goal is reached" },
					]}
					onChange={(mode) => set({ mode })}
				/>
				<SelectField
					label="What agents may write"
					value={settings.globalMode}
					options={[
						{ value: "IMPLEMENTATION", label: "implementation: what their role allows" },
						{ value: "PLANNING", label: "planning: documents only" },
					]}
					onChange={(globalMode) => set({ globalMode })}
				/>
				<TextArea
					label="Verification"
					hint="Commands that must pass before the run is complete, one a line."
					rows={2}
					value={settings.verify}
					onChange={(event) => set({ verify: event.target.value })}
				/>
				<TextArea
					label="Setup"
					hint="Commands that run once in each new worktree, one a line."
					rows={2}
					value={settings.setup}
					onChange={(event) => set({ setup: event.target.value })}
				/>
				<TextField
					label="Budget, tokens"
					inputMode="numeric"
					hint="When it is used up, the run is paused."
					value={settings.tokens}
					onChange={(event) => set({ tokens: event.target.value.trim() })}
				/>
				<TextField
					label="Budget, US dollars"
					type="number"
					min="0"
					step="any"
					value={settings.dollars}
					onChange={(event) => set({ dollars: event.target.value })}
				/>
				<TextField label="Title" value={settings.title} onChange={(event) => set({ title: event.target.value })} />
			</div>
		</details>
	);
}

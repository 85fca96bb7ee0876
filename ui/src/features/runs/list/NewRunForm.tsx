/** The form of a new run. Where it works and which team are in the URL; what is typed is kept until it is sent. */

import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { navigate } from "wouter/use-browser-location";
import { useActionBlock } from "../../../api/connection";
import { errorWords } from "../../../api/errors";
import { answer, api } from "../../../api/http";
import { keys } from "../../../api/keys";
import { worldsQuery } from "../../../api/queries";
import { paths } from "../../../app/paths";
import { Button } from "../../../components/Button";
import { ErrorNote } from "../../../components/ErrorNote";
import { Checkbox, SelectField, TextArea } from "../../../components/Field";
import { toast } from "../../../components/toasts";
import { useDraft } from "../../../components/useDraft";
import { useFormDraft } from "../../../components/useFormDraft";
import { useQueryParam } from "../../../components/useQueryParam";
import type { Schema } from "../../../model/schema";
import { teamAgents } from "../../../model/team-file";
import { firstLine } from "../../../model/text-safety";
import { FolderPicker } from "./FolderPicker";
import css from "./List.module.css";
import { MoreSettings, NO_MORE, type RunSettings, settingsBody } from "./MoreSettings";
import { ProgramCheck } from "./ProgramCheck";
import { useNewRun } from "./useNewRun";

export function NewRunForm() {
	const [folder, setFolder] = useQueryParam("folder");
	const [team, setTeam] = useQueryParam("team");
	const [world, setWorld] = useQueryParam("ledger");
	const [goal, setGoal, clearGoal] = useDraft("new-run:goal");
	const { form: settings, set: setSettings, clear: clearSettings } = useFormDraft("new-run:settings", NO_MORE);
	const [starts, setStarts] = useState(true);
	const block = useActionBlock();
	const make = useNewRun();
	const chosenTeam = team ?? "solo";
	const why = block ?? whyNot(folder ?? "", goal, settings);
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (why !== null || make.isPending) return;
		const body: Schema<"CreateRun"> = {
			...settingsBody(settings),
			cwd: folder,
			goal: goal.trim(),
			...(chosenTeam === "none" ? {} : { team: chosenTeam }),
			...(world === null ? {} : { world }),
		};
		make.mutate(
			{ body, starts },
			{
				onSuccess({ run, unsent }) {
					clearGoal();
					clearSettings();
					if (unsent !== null) toast(`The run was made, but its goal was not sent. ${errorWords(unsent).what}`);
					navigate(paths.run(run.id));
				},
			},
		);
	};
	return (
		<form className={css.form} onSubmit={submit}>
			<FolderPicker value={folder ?? ""} onChange={(path) => setFolder(path, { replace: true })} />
			<TextArea
				label="Goal"
				hint="What is to be done, and how you will know that it is. Its first line becomes the title."
				rows={4}
				value={goal}
				onChange={(event) => setGoal(event.target.value)}
			/>
			<div className={css.columns}>
				<TeamField value={chosenTeam} onChange={(name) => setTeam(name, { replace: true })} />
				<LedgerField value={world} onChange={(name) => setWorld(name, { replace: true })} />
			</div>
			<ProgramCheck />
			<MoreSettings settings={settings} onChange={setSettings} />
			{make.error !== null && <ErrorNote context="No run was made." error={make.error} />}
			<div className={css.submit}>
				<Button type="submit" look="primary" blocked={why} isPending={make.isPending}>
					Start the run
				</Button>
				{chosenTeam !== "none" && (
					<Checkbox label="Send the goal to the agent that leads at once" isOn={starts} onChange={setStarts} />
				)}
			</div>
		</form>
	);
}

function whyNot(folder: string, goal: string, settings: RunSettings): string | null {
	if (folder === "") return "Choose a folder";
	if (!folder.startsWith("/")) return "The folder must be a whole path, from / on";
	if (goal.trim() === "") return "Say what the goal is";
	return settings.tokens !== "" && !/^[1-9][0-9]{0,14}$/.test(settings.tokens) ? "The token budget is no number" : null;
}

function TeamField({ value, onChange }: { readonly value: string; readonly onChange: (name: string) => void }) {
	const teams = useQuery({
		queryKey: keys.system("teams"),
		queryFn: async ({ signal }) => (await answer(api.GET("/api/teams", { signal }))).teams,
	});
	const known = teams.data ?? [];
	const chosen = known.find(({ name }) => name === value);
	const agents = teamAgents(chosen?.text ?? "").map(({ label }) => firstLine(label, 30));
	const none = "Without agents: you add them on the next page.";
	const names = known.some(({ name }) => name === value) || value === "none" ? known : [{ name: value }, ...known];
	return (
		<SelectField
			label="Team"
			hint={value === "none" ? none : agents.join(", ") || "Its agents are not known here."}
			value={value}
			options={[...names.map(({ name }) => ({ value: name, label: name })), { value: "none", label: "no team" }]}
			onChange={onChange}
		/>
	);
}

interface LedgerFieldProps {
	readonly value: string | null;
	readonly onChange: (name: string | null) => void;
}

function LedgerField({ value, onChange }: LedgerFieldProps) {
	const worlds = useQuery(worldsQuery());
	const names = (worlds.data ?? []).map(({ world_id }) => world_id);
	const known = value === null || names.includes(value) ? names : [value, ...names];
	return (
		<SelectField
			label="Ledger (optional)"
			hint="Agents become people of it, and their handoffs private entries."
			value={value ?? ""}
			options={[{ value: "", label: "none" }, ...known.map((name) => ({ value: name, label: name }))]}
			onChange={(name) => onChange(name === "" ? null : name)}
		/>
	);
}

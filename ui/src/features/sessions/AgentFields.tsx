/** Which agent of which run gets it. */

import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { runsQuery } from "../../api/queries";
import { ErrorNote } from "../../components/ErrorNote";
import { SelectField } from "../../components/Field";
import { firstLine } from "../../model/text-safety";
import type { DeliverForm } from "./deliver-form";

export interface AgentFieldsProps {
	readonly form: DeliverForm;
	readonly onChange: (part: Partial<DeliverForm>) => void;
}

export function AgentFields({ form, onChange }: AgentFieldsProps) {
	const runs = useQuery(runsQuery());
	const agents = useQuery({
		queryKey: keys.run(form.run, "agents-to-deliver-to"),
		enabled: form.run !== "",
		queryFn: async ({ signal }) => {
			const path = { run_id: form.run };
			const { run } = await answer(api.GET("/api/runs/{run_id}", { params: { path }, signal }));
			return Object.values(run.nodes).map(({ id, label }) => ({ value: id, label: firstLine(label, 60) }));
		},
	});
	const error = runs.error ?? agents.error;
	const runOptions = (runs.data ?? []).map(({ id, title }) => ({
		value: id,
		label: firstLine(title, 60) || `Run ${id.slice(0, 8)}`,
	}));
	return (
		<>
			<SelectField
				label="Run"
				value={form.run}
				options={[{ value: "", label: "choose a run" }, ...runOptions]}
				hint={runs.data?.length === 0 ? "There is no run yet." : undefined}
				onChange={(run) => onChange({ run, node: "" })}
			/>
			<SelectField
				label="Agent"
				value={form.node}
				options={[{ value: "", label: "choose an agent" }, ...(agents.data ?? [])]}
				onChange={(node) => onChange({ node })}
			/>
			{error !== null && <ErrorNote error={error} />}
		</>
	);
}

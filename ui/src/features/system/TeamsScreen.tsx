/** Teams: the agents and edges that a new run can begin with. */

import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { teamAgents } from "../../model/team-file";
import { firstLine } from "../../model/text-safety";
import { NamedFiles } from "./NamedFiles";

const KEY = keys.system("teams");

export default function TeamsScreen() {
	const list = useQuery({
		queryKey: KEY,
		queryFn: async ({ signal }) => (await answer(api.GET("/api/teams", { signal }))).teams,
	});
	return (
		<NamedFiles
			page="teams"
			noun="team"
			format="TOML"
			queryKey={KEY}
			files={list.data?.map((team) => ({ ...team, note: agentNames(team.text) }))}
			error={list.error}
			save={(name, text) => answer(api.PUT("/api/teams/{name}", { params: { path: { name } }, body: { text } }))}
			remove={(name) => answer(api.DELETE("/api/teams/{name}", { params: { path: { name } } }))}
		/>
	);
}

function agentNames(text: string): string {
	return teamAgents(text)
		.map(({ label }) => firstLine(label, 30))
		.join(", ");
}

/** Roles: what an agent is told about its job, and what it may do by default. */

import { useQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import type { Schema } from "../../model/schema";
import { NamedFiles } from "./NamedFiles";

const KEY = keys.system("roles");

const CAPABILITY_WORDS: readonly (readonly [keyof Schema<"CapabilitiesView">, string])[] = [
	["writeCode", "writes code"],
	["writeDocs", "writes documents"],
	["runCommands", "runs commands"],
	["spawnNodes", "starts agents"],
	["delegateOnly", "only delegates"],
];

export default function RolesScreen() {
	const list = useQuery({
		queryKey: KEY,
		queryFn: async ({ signal }) => (await answer(api.GET("/api/roles", { signal }))).roles,
	});
	const files = list.data?.map((role) => ({ ...role, note: capabilityWords(role.capabilities) }));
	return (
		<NamedFiles
			page="roles"
			noun="role"
			format="Markdown"
			queryKey={KEY}
			files={files}
			error={list.error}
			save={(name, text) => answer(api.PUT("/api/roles/{name}", { params: { path: { name } }, body: { text } }))}
			remove={(name) => answer(api.DELETE("/api/roles/{name}", { params: { path: { name } } }))}
		/>
	);
}

function capabilityWords(capabilities: Schema<"CapabilitiesView">): string {
	const words = CAPABILITY_WORDS.filter(([name]) => capabilities[name]).map(([, word]) => word);
	return words.length === 0 ? "only reads" : words.join(", ");
}

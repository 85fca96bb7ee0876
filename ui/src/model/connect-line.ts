/** The shell line that connects an agent program to a ledger, with a person's token. */

export const AGENT_PROGRAMS = ["claude", "codex", "gemini"] as const;
export type AgentProgram = (typeof AGENT_PROGRAMS)[number];

/** The same lines as `turnkeep world token WORLD PERSON --mcp PROGRAM` prints. */
export function connectLine(
	program: AgentProgram,
	at: { readonly server: string; readonly ledger: string; readonly person: string; readonly token: string },
): string {
	// The programs accept letters, digits, hyphens and underscores in a name, but no dots.
	const name = `turnkeep-${at.ledger}-${at.person}`.replaceAll(".", "-");
	switch (program) {
		case "claude":
		case "gemini":
			return `${program} mcp add --transport http ${name} ${at.server}/mcp --header "Authorization: Bearer ${at.token}"`;
		// It takes the token of an HTTP server from the environment only, so it gets the bridge instead.
		case "codex":
			return `codex mcp add ${name} --env TURNKEEP_TOKEN=${at.token} --env TURNKEEP_SERVER=${at.server} -- turnkeep mcp`;
	}
}

/** What a team's file says about its agents, as far as a person wants to know before choosing it. */

export interface TeamAgent {
	readonly label: string;
	readonly role: string | null;
}

/** The agents of a team. The server reads the file; this only takes the names out of it. */
export function teamAgents(text: string): TeamAgent[] {
	const agents: TeamAgent[] = [];
	for (const part of text.split(/^\s*\[\[/m).slice(1)) {
		if (!part.startsWith("nodes]]")) continue;
		const name = textOf(part, "label") ?? textOf(part, "alias");
		const role = textOf(part, "role") ?? textOf(part, "roleTemplate");
		agents.push({ label: name ?? role ?? "an agent", role });
	}
	return agents;
}

function textOf(table: string, key: string): string | null {
	const found = new RegExp(`^\\s*${key}\\s*=\\s*(?:"([^"\\n]*)"|'([^'\\n]*)')`, "m").exec(table);
	return found?.[1] ?? found?.[2] ?? null;
}

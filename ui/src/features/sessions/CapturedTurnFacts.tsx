/** What is known about a captured turn. */

import { Facts } from "../../components/Card";
import { Time } from "../../components/Time";
import { formatBytes } from "../../model/quantity";
import type { Schema } from "../../model/schema";
import { turnFlags } from "../../model/session";
import { safeText } from "../../model/text-safety";

const SOURCES: Readonly<Record<string, string>> = {
	stream: "what the program printed",
	screen: "the screen, as it was painted",
	hook: "the program's own hook, word for word",
};

export function CapturedTurnFacts({ turn }: { readonly turn: Schema<"CapturedTurn"> }) {
	const flags = turnFlags(turn);
	const source = turn.text_source;
	return (
		<Facts
			facts={[
				["Completed", <Time key="time" at={turn.timestamp} />],
				["Size", formatBytes(turn.byte_length)],
				["Preset", safeText(turn.preset ?? "none")],
				["Text from", source === undefined ? "the content" : (SOURCES[source] ?? safeText(source))],
				["Remarks", flags.length === 0 ? "complete" : flags.join(", ")],
			]}
		/>
	);
}

import type { RefKind } from "../../model/refs";
import type { IconName } from "../Icon";

/** The icon of each kind of thing. */
export const REF_ICONS: Record<RefKind, IconName> = {
	context: "history",
	turn: "dot",
	agentTurn: "dot",
	blob: "file",
	session: "sessions",
	capturedTurn: "dot",
	run: "runs",
	node: "agent",
	edge: "right",
	envelope: "inbox",
	message: "person",
	approval: "warning",
	artifact: "file",
	line: "file",
	world: "ledgers",
	entry: "ledgers",
	person: "person",
	type: "system",
};

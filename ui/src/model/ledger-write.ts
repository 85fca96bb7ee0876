/** What is sent to a ledger when somebody writes, and what a refusal means. */

import { OPERATOR_ID } from "./ledger";
import type { Schema } from "./schema";

/** The name under which this program asks. It is no person's. */
const INVOKER = "turnkeep-ui";

/** What the operator declares about the ledger's clock. */
export interface Declared {
	readonly time?: string | null;
	readonly pause?: boolean | null;
}

/** The operator's words. */
export function operatorEnvelope(
	requestId: string,
	text: string,
	declared: Declared = {},
): Schema<"InvocationEnvelope"> {
	const isDeclared = declared.time != null || declared.pause != null;
	return {
		request_id: requestId,
		invoker: { invoker_id: INVOKER, invoker_role: "INVOKER", notes: null },
		operator: { operator_id: OPERATOR_ID, input_text: text },
		mode: { kind: "BEAT", client_intent: null },
		declared_overrides: isDeclared
			? {
					time: { declared_world_time: declared.time ?? null, timezone: null },
					pause_time: declared.pause ?? null,
				}
			: null,
	};
}

/** One entry of a person; `readers` null for everyone. */
export function personBeat(
	requestId: string,
	person: string,
	text: string,
	readers: readonly string[] | null,
): Schema<"Beat"> {
	return {
		envelope: operatorEnvelope(requestId, ""),
		bundle: {
			request_id: requestId,
			proposed_by: { engine: INVOKER, actor: person },
			wrote: true,
			entries: [
				{
					request_id: requestId,
					author: { author_id: person, author_class: "PERSON" },
					visibility:
						readers === null ? { scope: "PUBLIC", visible_to: [] } : { scope: "PRIVATE", visible_to: [...readers] },
					channel: "PEOPLE",
					text,
				},
			],
		},
	};
}

/** Why the ledger refused a proposal. */
export interface Refusal {
	readonly code: string;
	/** Which part is at fault: `entries[0].text`. */
	readonly path: string;
	readonly words: string;
}

/** Reads `CODE: path`. */
export function readRefusal(reason: string): Refusal {
	const [, code = reason, path = ""] = /^([A-Z_]+)(?::\s*(.*))?$/s.exec(reason) ?? [];
	return { code, path, words: REFUSALS[code] ?? "The ledger refused it." };
}

const REFUSALS: Readonly<Record<string, string>> = {
	TEXT_EMPTY: "The text is empty or only white space.",
	TEXT_TOO_LARGE: "The text is too long: an entry of a person has at most 256 KiB.",
	TOO_LARGE: "It is too large.",
	VISIBILITY_INVALID: "One of the readers is not known to the ledger, or is named twice.",
	AUTHOR_UNKNOWN: "The ledger does not know the author.",
	AUTHOR_FORBIDDEN: "The author may not be written for.",
	CHANNEL_INVALID: "The author may not write in this way.",
	TIME_INCONSISTENT: "Its time does not fit the ledger’s clock.",
	POCKET_INVALID: "An item for the pocket is wrong.",
	PROVENANCE_INVALID: "It cites an entry that its author cannot see.",
};

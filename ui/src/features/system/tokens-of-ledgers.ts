/** The tokens of all ledgers together. */

import type { UseQueryResult } from "@tanstack/react-query";
import { type Ledger, labelOf } from "../../model/ledger";
import type { Schema } from "../../model/schema";

export interface LedgerToken {
	readonly ledger: Ledger;
	readonly token: Schema<"Token">;
	/** What people see of the person whose token it is. */
	readonly name: string;
}

export interface TokensOfLedgers {
	/** Newest first. */
	readonly tokens: readonly LedgerToken[];
	readonly isPending: boolean;
	/** Ledgers whose tokens could not be read. */
	readonly failures: readonly { readonly ledger: Ledger; readonly error: Error; readonly onRetry: () => void }[];
}

/** Joins the answers of the ledgers, which come one by one and in the order of the ledgers. */
export function joinTokens(
	ledgers: readonly Ledger[],
	answers: readonly UseQueryResult<readonly Schema<"Token">[]>[],
): TokensOfLedgers {
	const tokens = ledgers.flatMap((ledger, at) =>
		(answers[at]?.data ?? []).map((token) => ({ ledger, token, name: labelOf(ledger, token.person_id) })),
	);
	return {
		tokens: tokens.toSorted((one, other) => Date.parse(other.token.created_at) - Date.parse(one.token.created_at)),
		isPending: answers.some((answer) => answer.isPending),
		failures: ledgers.flatMap((ledger, at) => {
			const { error, refetch } = answers[at] ?? {};
			return error == null ? [] : [{ ledger, error, onRetry: () => void refetch?.() }];
		}),
	};
}

/** The tokens of the ledgers in one table, with the form of a new one and the question before one is revoked. */

import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import { tokensQuery } from "../../api/queries";
import { cx } from "../../components/cx";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { RevokeToken } from "../../components/tokens/RevokeToken";
import { useQueryParam } from "../../components/useQueryParam";
import type { Ledger } from "../../model/ledger";
import { firstLine } from "../../model/text-safety";
import { LedgerChoice } from "./LedgerChoice";
import { NewToken } from "./NewToken";
import css from "./System.module.css";
import { TokensTable } from "./TokensTable";
import { joinTokens, type LedgerToken } from "./tokens-of-ledgers";

export interface TokensOfLedgersProps {
	readonly ledgers: readonly Ledger[];
	/** The ledger whose tokens are shown; null for all of them. */
	readonly only: string | null;
}

export function TokensOfLedgers({ ledgers, only }: TokensOfLedgersProps) {
	const shown = ledgers.filter(({ world_id }) => only === null || world_id === only);
	const { tokens, isPending, failures } = useQueries({
		queries: shown.map(({ world_id }) => tokensQuery(world_id)),
		combine: (answers) => joinTokens(shown, answers),
	});
	const [isNew, setNew] = useQueryParam("new");
	const [revoked, setRevoked] = useState<LedgerToken | null>(null);
	const [revocations, setRevocations] = useState(0);
	return (
		<>
			{ledgers.length > 1 && (
				<div className={css.tools}>
					<LedgerChoice ledgers={ledgers} value={only ?? ""} hasAll />
				</div>
			)}
			<p className={cx(css.soft, css.intro)}>
				A token opens one ledger as one person, and nothing else. It is shown once, when it is made. The owner’s token,
				which opens everything, is the file <code>token</code> in the data directory.
			</p>
			{failures.map(({ ledger, error, onRetry }) => (
				<ErrorNote
					key={ledger.world_id}
					context={`The tokens of ${firstLine(ledger.world_id)} were not read.`}
					error={error}
					onRetry={onRetry}
				/>
			))}
			{isPending && tokens.length === 0 && <Skeleton lines={4} />}
			{tokens.length > 0 && <TokensTable tokens={tokens} onRevoke={setRevoked} />}
			{!isPending && tokens.length === 0 && failures.length === 0 && (
				<EmptyState
					title="No tokens yet"
					command={`turnkeep world token ${only ?? ledgers[0]?.world_id ?? "payments"} CODER --write --mcp claude`}
				>
					Each token of an agent would be a line here, with the way to revoke it. Make one here, or with this command,
					which prints the line that connects the agent:
				</EmptyState>
			)}
			{isNew === "1" && (
				// A token that was just made is not shown on after a revocation: it may be the one.
				<NewToken key={revocations} ledgers={ledgers} first={only} onClose={() => setNew(null)} />
			)}
			{revoked !== null && (
				<RevokeToken
					world={revoked.ledger.world_id}
					name={firstLine(revoked.name)}
					token={revoked.token}
					onRevoked={() => setRevocations((count) => count + 1)}
					onClose={() => setRevoked(null)}
				/>
			)}
		</>
	);
}

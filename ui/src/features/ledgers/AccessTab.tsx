/** The tokens of a person, and the line that connects an agent. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { tokensQuery } from "../../api/queries";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { Time } from "../../components/Time";
import { MintToken } from "../../components/tokens/MintToken";
import { RevokeToken } from "../../components/tokens/RevokeToken";
import { type Ledger, labelOf } from "../../model/ledger";
import type { Schema } from "../../model/schema";
import { firstLine } from "../../model/text-safety";
import css from "./Ledgers.module.css";

export interface AccessTabProps {
	readonly world: string;
	readonly ledger: Ledger;
	readonly person: string;
}

export function AccessTab({ world, ledger, person }: AccessTabProps) {
	const { data, error, isPending, refetch } = useQuery(tokensQuery(world));
	const [revocations, setRevocations] = useState(0);
	const [revoked, setRevoked] = useState<Schema<"Token"> | null>(null);
	const own = (data ?? []).filter(({ person_id }) => person_id === person);
	const name = firstLine(labelOf(ledger, person));
	return (
		<div className={css.page}>
			<section aria-labelledby="connect">
				<h2 id="connect">Connect an agent</h2>
				{/* A token that was just made is not shown on after a revocation: it may be the one. */}
				<MintToken key={revocations} world={world} person={person} name={name} />
			</section>
			<section aria-labelledby="tokens">
				<h2 id="tokens">Tokens</h2>
				{isPending && <Skeleton lines={2} />}
				{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
				{data !== undefined && own.length === 0 && (
					<p
						className={css.soft}
					>{`No token opens this ledger as ${name}: no agent can read or write as this person.`}</p>
				)}
				<ul className={css.tokens}>
					{own.map((token) => (
						<li key={token.token_id} className={css.token}>
							<span>
								<code>{token.token_id}</code> {token.write ? "may read and write" : "may read"}{" "}
								<span className={css.soft}>
									made <Time at={token.created_at} />
									{token.expires_at == null ? (
										", never ends"
									) : (
										<>
											, ends <Time at={token.expires_at} />
										</>
									)}
								</span>
							</span>
							<Button look="danger" onClick={() => setRevoked(token)}>
								Revoke…
							</Button>
						</li>
					))}
				</ul>
			</section>
			{revoked !== null && (
				<RevokeToken
					world={world}
					name={name}
					token={revoked}
					onRevoked={() => setRevocations((count) => count + 1)}
					onClose={() => setRevoked(null)}
				/>
			)}
		</div>
	);
}

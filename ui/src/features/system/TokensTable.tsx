/** Tokens, one a line, with their rights and their end. */

import { Button } from "../../components/Button";
import { type Column, DataTable } from "../../components/DataTable";
import { RefChip } from "../../components/refs/RefChip";
import { StateWord } from "../../components/StateWord";
import { Time, useNow } from "../../components/Time";
import { parseTime } from "../../model/time";
import css from "./System.module.css";
import type { LedgerToken } from "./tokens-of-ledgers";

export interface TokensTableProps {
	readonly tokens: readonly LedgerToken[];
	readonly onRevoke: (token: LedgerToken) => void;
}

export function TokensTable({ tokens, onRevoke }: TokensTableProps) {
	const columns: readonly Column<LedgerToken>[] = [
		{
			id: "person",
			header: "Opens a ledger as",
			minWidth: 130,
			grow: 1,
			cell: ({ ledger, token, name }) => (
				<RefChip to={{ kind: "person", world: ledger.world_id, id: token.person_id }} name={name} />
			),
		},
		{
			id: "ledger",
			header: "Ledger",
			minWidth: 120,
			grow: 1,
			cell: ({ ledger }) => <RefChip to={{ kind: "world", name: ledger.world_id }} />,
		},
		{
			id: "may",
			header: "May",
			minWidth: 110,
			drop: 3,
			cell: ({ token }) => (token.write ? "read and write" : "read"),
		},
		{ id: "made", header: "Made", minWidth: 90, drop: 2, cell: ({ token }) => <Time at={token.created_at} /> },
		{ id: "ends", header: "Ends", minWidth: 110, drop: 4, cell: ({ token }) => <End at={token.expires_at ?? null} /> },
		{
			id: "id",
			header: "Token",
			minWidth: 250,
			drop: 1,
			cell: ({ token }) => <code className={css.soft}>{token.token_id}</code>,
		},
		{
			id: "revoke",
			header: "Revoke",
			minWidth: 104,
			cell: (each) => (
				<Button
					look="danger"
					aria-label={`Revoke the token ${each.token.token_id}…`}
					data-item=""
					onClick={() => onRevoke(each)}
				>
					Revoke…
				</Button>
			),
		},
	];
	return <DataTable label="Tokens" columns={columns} rows={tokens} rowKey={({ token }) => token.token_id} />;
}

function End({ at }: { readonly at: string | null }) {
	const now = useNow();
	const end = at === null ? null : parseTime(at);
	if (at === null || end === null) return <span className={css.soft}>never</span>;
	if (end > now) return <Time at={at} />;
	return (
		<StateWord tone="neutral" word="ended">
			<Time at={at} />
		</StateWord>
	);
}

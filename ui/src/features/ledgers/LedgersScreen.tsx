import { useQuery } from "@tanstack/react-query";
import { runsQuery, worldsQuery } from "../../api/queries";
import { Button } from "../../components/Button";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { LedgersTable } from "./LedgersTable";
import { NewLedgerDialog } from "./NewLedgerDialog";

/** All ledgers, and the way to a new one. */
export default function LedgersScreen() {
	const { data, error, isPending, refetch } = useQuery(worldsQuery());
	const { data: runs = [] } = useQuery(runsQuery());
	const [isNew, setNew] = useQueryParam("new");
	const open = (
		<Button look="primary" onClick={() => setNew("1")}>
			Open a new ledger
		</Button>
	);
	return (
		<Page title="Ledgers" actions={data !== undefined && data.length > 0 ? open : undefined}>
			{isPending && <Skeleton lines={4} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && data.length === 0 && (
				<EmptyState title="No ledgers yet" command="turnkeep world new payments --person CODER" action={open}>
					A ledger is one shared history of a team: everyone can search and quote it, nobody can change it, and nobody
					sees what was addressed to others.
				</EmptyState>
			)}
			{data !== undefined && data.length > 0 && <LedgersTable ledgers={data} runs={runs} />}
			{isNew === "1" && <NewLedgerDialog onClose={() => setNew(null)} />}
		</Page>
	);
}

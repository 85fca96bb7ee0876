/** What is shown instead of a ledger that could not be read. */

import { Link } from "wouter";
import { isNotFound } from "../../api/errors";
import { paths } from "../../app/paths";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { ledgerError } from "./ledger-error";

export interface LedgerFaultProps {
	readonly world: string;
	readonly error: unknown;
	readonly onRetry: () => void;
}

export function LedgerFault({ world, error, onRetry }: LedgerFaultProps) {
	if (!isNotFound(error)) return <ErrorNote error={ledgerError(error)} onRetry={onRetry} />;
	return (
		<EmptyState title="Not found" action={<Link href={paths.ledgers()}>All ledgers</Link>}>
			{`There is no ledger called ${world} in this data directory. Perhaps the name is spelled differently, or it is in another directory.`}
		</EmptyState>
	);
}

/** Who looked into a ledger, changed it or was refused: the lines of its audit, newest first. */

import { useQuery } from "@tanstack/react-query";
import { worldsQuery } from "../../api/queries";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { AuditOfLedger } from "./AuditOfLedger";
import { NoLedger } from "./NoLedger";
import { SystemFrame } from "./SystemFrame";

export default function AuditScreen() {
	const { data, error, isPending, refetch } = useQuery(worldsQuery());
	const [name] = useQueryParam("ledger");
	const ledger = name === null ? data?.[0] : data?.find(({ world_id }) => world_id === name);
	return (
		<SystemFrame page="audit" isFull>
			{isPending && <Skeleton lines={8} />}
			{error !== null && data === undefined && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && ledger === undefined && <NoLedger page="audit" name={name} />}
			{data !== undefined && ledger !== undefined && (
				<AuditOfLedger key={ledger.world_id} ledger={ledger} ledgers={data} />
			)}
		</SystemFrame>
	);
}

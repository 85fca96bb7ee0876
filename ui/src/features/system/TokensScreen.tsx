/** The tokens that open ledgers to agents: whose they are, what they allow, and when they end. */

import { useQuery } from "@tanstack/react-query";
import { worldsQuery } from "../../api/queries";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { NoLedger } from "./NoLedger";
import { SystemFrame } from "./SystemFrame";
import { TokensOfLedgers } from "./TokensOfLedgers";

export default function TokensScreen() {
	const { data, error, isPending, refetch } = useQuery(worldsQuery());
	const [name] = useQueryParam("ledger");
	const [, setNew] = useQueryParam("new");
	const isKnown = name === null || data?.some(({ world_id }) => world_id === name);
	const hasTokens = data !== undefined && data.length > 0 && isKnown;
	const actions = (
		<Button icon="plus" onClick={() => setNew("1")}>
			New token
		</Button>
	);
	return (
		<SystemFrame page="tokens" actions={hasTokens ? actions : undefined}>
			{isPending && <Skeleton lines={4} />}
			{error !== null && data === undefined && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && !hasTokens && <NoLedger page="tokens" name={name} />}
			{hasTokens && <TokensOfLedgers ledgers={data} only={name} />}
		</SystemFrame>
	);
}

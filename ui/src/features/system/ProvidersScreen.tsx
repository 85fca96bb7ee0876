/** The agent programs of the server's machine: found, logged in, and what each can do. */

import { useQuery } from "@tanstack/react-query";
import { providersQuery } from "../../api/queries";
import { Button } from "../../components/Button";
import { type Column, DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { SafeText } from "../../components/SafeText";
import { Skeleton } from "../../components/Skeleton";
import { StateWord } from "../../components/StateWord";
import type { Schema } from "../../model/schema";
import { SystemFrame } from "./SystemFrame";

type Provider = Schema<"ProviderHealth">;

export default function ProvidersScreen() {
	const { data, error, isPending, isFetching, refetch } = useQuery(providersQuery());
	const check = (
		<Button isPending={isFetching} onClick={() => void refetch()}>
			Check again
		</Button>
	);
	return (
		<SystemFrame page="providers" actions={check}>
			{isPending && <Skeleton lines={4} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && (
				<DataTable label="Agent programs" columns={COLUMNS} rows={data} rowKey={(each) => each.name} />
			)}
		</SystemFrame>
	);
}

const COLUMNS: readonly Column<Provider>[] = [
	{ id: "name", header: "Program", minWidth: 100, cell: (each) => <SafeText text={each.name} /> },
	{ id: "state", header: "State", minWidth: 200, grow: 1, cell: (each) => <ProviderState provider={each} /> },
	{ id: "version", header: "Version", minWidth: 100, drop: 2, cell: (each) => <SafeText text={each.version ?? "—"} /> },
	{ id: "features", header: "Can", minWidth: 260, drop: 1, cell: (each) => featureWords(each.features) },
];

function ProviderState({ provider }: { readonly provider: Provider }) {
	const hint = provider.hint == null ? undefined : <SafeText text={provider.hint} />;
	if (!provider.found)
		return (
			<StateWord tone="failed" word="not found">
				{hint}
			</StateWord>
		);
	if (provider.loggedIn === false)
		return (
			<StateWord tone="waiting" word="not logged in">
				{hint}
			</StateWord>
		);
	const login = provider.loggedIn === true ? "found, logged in" : "found";
	return (
		<StateWord tone="done" word={login}>
			{hint}
		</StateWord>
	);
}

const FEATURE_WORDS: readonly (readonly [keyof Provider["features"], string])[] = [
	["approvals", "asks before it acts"],
	["editArgs", "takes edited calls"],
	["resume", "continues sessions"],
	["mcp", "uses tools"],
	["usage", "reports tokens"],
	["cost", "reports cost"],
];

function featureWords(features: Provider["features"]): string {
	const words = FEATURE_WORDS.filter(([name]) => features[name]).map(([, word]) => word);
	return words.length === 0 ? "answer only" : words.join(", ");
}

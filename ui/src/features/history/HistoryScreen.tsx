import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { isNotFound } from "../../api/errors";
import { keys } from "../../api/keys";
import { paths } from "../../app/paths";
import { CopyButton } from "../../components/CopyButton";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import { HistoryActions } from "./HistoryActions";
import { HistoryGraph } from "./HistoryGraph";
import { HistoryLabels } from "./HistoryLabels";
import { type Lineage, lineageQuery, relatedQuery, withOlder } from "./lineage";
import { TurnDrawer } from "./TurnDrawer";
import { placeOf } from "./useTurn";

/** A history with the histories that share its past, as a graph; one of its turns in the drawer. */
export default function HistoryScreen({ params }: ScreenProps<"context", "turn">) {
	const { context, turn } = params;
	const lineage = useQuery(lineageQuery(context));
	const related = useQuery(relatedQuery(context, (lineage.data?.turns.length ?? 0) > 0));
	const older = useOlderTurns(context, lineage.data);
	const isMissing = isNotFound(lineage.error);
	const found = lineage.data;
	return (
		<Page
			title={`History ${context}`}
			crumbs={[{ label: "History", href: paths.histories() }]}
			isFull
			aside={<CopyButton text={`ctx:${context}`} label="Copy the ref" />}
			actions={found !== undefined && <HistoryActions lineage={found} related={related.data} />}
			bar={found !== undefined && <HistoryLabels lineage={found} related={related} />}
		>
			{lineage.isPending && <Skeleton lines={12} />}
			{isMissing && (
				<EmptyState title="Not found">{`There is no history ${context}. It may be of another data directory.`}</EmptyState>
			)}
			{lineage.error !== null && !isMissing && (
				<ErrorNote
					context={found === undefined ? "The turns cannot be read." : "What is shown may be old."}
					error={lineage.error}
					onRetry={() => void lineage.refetch()}
				/>
			)}
			{older.error !== null && <ErrorNote context="The older turns were not fetched." error={older.error} />}
			{found !== undefined && found.turns.length === 0 && <NoTurns context={found.context.context_id} />}
			{found !== undefined && found.turns.length > 0 && (
				<HistoryGraph lineage={found} related={related.data} current={turn ?? null} onReachEnd={older.fetch} />
			)}
			{turn !== undefined && found !== undefined && (
				<TurnDrawer key={turn} context={context} turn={turn} place={placeOf(turn, found, related.data)} />
			)}
		</Page>
	);
}

function NoTurns({ context }: { readonly context: string }) {
	return (
		<EmptyState
			title="No turns yet"
			command={`echo '{"text":"hi"}' | turnkeep append ${context} --type turnkeep.Note@1 --data -`}
		>
			Each turn that is appended would be a line here.
		</EmptyState>
	);
}

/** Fetches the turns that lie before the first page of a very long history. */
function useOlderTurns(context: string, lineage: Lineage | undefined) {
	const client = useQueryClient();
	const [state, setState] = useState<{ readonly isPending: boolean; readonly error: unknown }>({
		isPending: false,
		error: null,
	});
	const fetch = async () => {
		if (lineage === undefined || !lineage.hasMore || state.isPending) return;
		setState({ isPending: true, error: null });
		try {
			const next = await withOlder(lineage, new AbortController().signal);
			client.setQueryData(keys.context(context, "lineage"), next);
			setState({ isPending: false, error: null });
		} catch (error) {
			setState({ isPending: false, error });
		}
	};
	return { error: state.error, fetch: () => void fetch() };
}

import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import { Button } from "../../components/Button";
import { FilterChip } from "../../components/Chip";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { ORIGIN_WORDS, ORIGINS, originOf } from "../../model/history";
import { HistoriesTable } from "./HistoriesTable";
import css from "./History.module.css";
import { LabelFilter } from "./LabelFilter";

const PAGE_CONTEXTS = 200;

const PROGRAM = `import { connect, encodeTagged } from "@turnkeep/client/node";
const client = await connect("127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId } = await client.createContext();
await client.append({ contextId, type: { id: "turnkeep.Note", version: 1 }, payload: encodeTagged({ 1: "Hello." }) });`;

/** All histories with their labels, grouped by what wrote them. */
export default function HistoriesScreen() {
	const [label, setLabel] = useQueryParam("label");
	const [origin, setOrigin] = useQueryParam("origin");
	const wanted = ORIGINS.find((each) => each === origin) ?? null;
	const histories = useHistories(label, wanted === "ledger");
	const all = histories.data?.pages.flatMap(({ contexts }) => contexts) ?? [];
	const groups = ORIGINS.map((each) => ({
		origin: each,
		contexts: all.filter(({ labels }) => originOf(labels) === each),
	}));
	const shown = groups.filter((group) => group.contexts.length > 0 && (wanted === null || group.origin === wanted));
	const isEmpty = histories.data !== undefined && all.length === 0 && !histories.hasNextPage;
	const isFirst = isEmpty && label === null && wanted === null;
	return (
		<Page
			title="History"
			bar={
				isFirst ? undefined : (
					<div className={css.bar}>
						<LabelFilter key={label ?? ""} label={label ?? ""} onChange={setLabel} />
						{ORIGINS.map((each) => (
							<FilterChip key={each} isOn={wanted === each} onToggle={() => setOrigin(wanted === each ? null : each)}>
								{ORIGIN_WORDS[each]}
							</FilterChip>
						))}
					</div>
				)
			}
		>
			{histories.isPending && <Skeleton lines={8} />}
			{histories.error !== null && <ErrorNote error={histories.error} onRetry={() => void histories.refetch()} />}
			{isFirst && (
				<EmptyState title="No history yet" command={PROGRAM}>
					A history is a line of turns that programs, runs and kept captured turns append to. Each would be a line here,
					with its labels. These four lines make one:
				</EmptyState>
			)}
			{histories.data !== undefined && !isFirst && shown.length === 0 && (
				<p role="status">{histories.hasNextPage ? "None so far fits the filter." : "No history fits the filter."}</p>
			)}
			{shown.map((group) => (
				<section key={group.origin} className={css.group} aria-label={ORIGIN_WORDS[group.origin]}>
					<h2>{ORIGIN_WORDS[group.origin]}</h2>
					<HistoriesTable label={ORIGIN_WORDS[group.origin]} contexts={group.contexts} onLabel={setLabel} />
				</section>
			))}
			{histories.hasNextPage && (
				<Button isPending={histories.isFetchingNextPage} onClick={() => void histories.fetchNextPage()}>
					Show older histories
				</Button>
			)}
		</Page>
	);
}

/** Newest created first. The histories of ledgers are left out unless they are asked for: ledgers have their own place. */
function useHistories(label: string | null, hasLedgers: boolean) {
	return useInfiniteQuery({
		queryKey: keys.contexts("list", label ?? "", hasLedgers ? "ledgers" : ""),
		initialPageParam: null as string | null,
		queryFn: ({ pageParam, signal }) => {
			const query = {
				limit: PAGE_CONTEXTS,
				worlds: hasLedgers,
				...(label === null ? {} : { label: [label] }),
				...(pageParam === null ? {} : { cursor: pageParam }),
			};
			return answer(api.GET("/v1/contexts", { params: { query }, signal }));
		},
		getNextPageParam: (page) => page.next_cursor,
		placeholderData: keepPreviousData,
	});
}

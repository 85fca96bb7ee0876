import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { useSearch } from "wouter";
import { keys } from "../../api/keys";
import { paths } from "../../app/paths";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { listBindings, useKeys } from "../../components/keys";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import { type Eyes, eyesKey } from "../../model/ledger";
import { isSearch, readLedgerSearch, searchTool } from "../../model/ledger-search";
import { queryWords } from "../../model/ledger-text";
import { EyesBar } from "./EyesBar";
import { EyesMenu } from "./EyesMenu";
import { LedgerFault } from "./LedgerFault";
import css from "./Ledgers.module.css";
import { LedgerTabs } from "./LedgerTabs";
import { ledgerQuery, retrieve } from "./ledger-queries";
import { SearchForm } from "./SearchForm";
import { SearchResult } from "./SearchResult";
import { useEyes } from "./useEyes";
import { usePeople } from "./usePeople";

const OPERATOR: Eyes = { kind: "operator" };

/** Excerpts that fit a query, best first; each opens its place in its entry. */
export default function LedgerSearchScreen({ params: { world } }: ScreenProps<"world">) {
	const { data: ledger, error: fault, refetch: readLedger } = useQuery(ledgerQuery(world));
	const [wanted, setEyes] = useEyes();
	// Search has no audit view: it searches as one reader, so that an entry hidden from this reader
	// cannot change the ranking. The operator is the closest reader to an audit.
	const eyes = wanted.kind === "audit" ? OPERATOR : wanted;
	const search = readLedgerSearch(useSearch());
	const { data, error, isLoading, refetch } = useQuery({
		queryKey: keys.world(world, "search", eyesKey(eyes), JSON.stringify(search)),
		queryFn: ({ signal }) => retrieve(world, eyes, searchTool(search), signal),
		enabled: isSearch(search),
	});
	const list = useRef<HTMLUListElement>(null);
	useKeys(
		"Results",
		listBindings(() => list.current),
	);
	const people = usePeople(world, ledger);
	const results = data?.results ?? [];
	return (
		<Page
			title={`Search ${world}`}
			crumbs={[
				{ label: "Ledgers", href: paths.ledgers() },
				{ label: world, href: paths.ledger(world) },
			]}
			actions={
				<EyesMenu
					eyes={eyes}
					ledger={ledger}
					people={people}
					auditBlock="A search is always somebody’s: choose whose"
					onChange={setEyes}
				/>
			}
			bar={<LedgerTabs world={world} current="search" ledger={ledger} eyes={eyes} />}
		>
			{fault !== null && ledger === undefined && (
				<LedgerFault world={world} error={fault} onRetry={() => void readLedger()} />
			)}
			<EyesBar eyes={eyes} ledger={ledger} back={paths.ledgerSearch(world, { q: search.q })} />
			<SearchForm key={JSON.stringify(search)} ledger={ledger} people={people} search={search} />
			{isLoading && <Skeleton lines={5} />}
			{error !== null && fault === null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{!isSearch(search) && fault === null && (
				<EmptyState title="Search what was written" command={`turnkeep search ${world} "words"`}>
					Excerpts that fit your words would be here, best first. “Quoted parts” must occur exactly. Without words, a
					time or an author gives the newest entries.
				</EmptyState>
			)}
			{data !== undefined && (
				<p role="status" className={css.soft}>
					{countWords(results.length)}
					{data.notes != null && ` ${data.notes}`}
				</p>
			)}
			<ul ref={list} aria-label="Results" className={css.results}>
				{results.map((result) => (
					<SearchResult
						key={result.entry_id}
						world={world}
						ledger={ledger}
						eyes={eyes}
						result={result}
						words={queryWords(search.q)}
					/>
				))}
			</ul>
		</Page>
	);
}

function countWords(count: number): string {
	if (count === 0) return "Nothing that can be seen here fits.";
	return count === 1 ? "1 excerpt, verbatim." : `${count} excerpts, verbatim, best first.`;
}

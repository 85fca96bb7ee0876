import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { Link, useSearch } from "wouter";
import { isNotFound } from "../../api/errors";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { explain } from "../../components/refs/why-store";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import { authorWords, type Entry, type Eyes, eyesQuery, type Ledger } from "../../model/ledger";
import { rangeOfBytes, rangesOfQuote, type TextRange } from "../../model/ledger-text";
import { EntryFacts } from "./EntryFacts";
import { EntryLinks } from "./EntryLinks";
import { EntryText } from "./EntryText";
import { EyesBar } from "./EyesBar";
import { EyesMenu } from "./EyesMenu";
import css from "./Ledgers.module.css";
import { entryQuery, ledgerQuery } from "./ledger-queries";
import { useEyes } from "./useEyes";
import { usePeople } from "./usePeople";

/** One entry: its words, who may see it, where it comes from, and what cites it. */
export default function EntryScreen({ params: { world, entry: id } }: ScreenProps<"world" | "entry">) {
	const { data: ledger } = useQuery(ledgerQuery(world));
	const people = usePeople(world, ledger);
	const [eyes, setEyes] = useEyes();
	const { data: entry, error, isPending, refetch } = useQuery(entryQuery(world, id, eyes));
	const reader = { operator: ledger?.operator_label ?? "Operator", audit: "the ledger", person: "this person" }[
		eyes.kind
	];
	return (
		<Page
			title={entry === undefined ? id : `Entry of ${authorWords(ledger, entry.author)}`}
			crumbs={[
				{ label: "Ledgers", href: paths.ledgers() },
				{ label: world, href: paths.ledger(world, eyesQuery(eyes)) },
			]}
			actions={
				<>
					<Button icon="chain" onClick={() => explain(`entry:${id}`)}>
						Why is this here?
					</Button>
					<EyesMenu eyes={eyes} ledger={ledger} people={people} onChange={setEyes} />
				</>
			}
		>
			<EyesBar
				eyes={eyes}
				ledger={ledger}
				back={paths.entry(world, id)}
				shows="this entry, whoever it was addressed to"
			/>
			{isPending && <Skeleton lines={5} />}
			{error !== null && !isNotFound(error) && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{error !== null && isNotFound(error) && (
				<EmptyState title="Not found" action={<Link href={paths.ledger(world, eyesQuery(eyes))}>Open the stream</Link>}>
					{`There is no entry ${id} that ${reader} can see. It may not exist, or it was addressed to others: the answer is the same. “Seeing as” shows other views.`}
				</EmptyState>
			)}
			{entry !== undefined && <EntryPage world={world} ledger={ledger} eyes={eyes} entry={entry} />}
		</Page>
	);
}

/** A longer text is shown in part at first. */
const CHARS_MAX = 60_000;

interface EntryPageProps {
	readonly world: string;
	readonly ledger: Ledger | undefined;
	readonly eyes: Eyes;
	readonly entry: Entry;
}

function EntryPage({ world, ledger, eyes, entry }: EntryPageProps) {
	const ranges = useRanges(entry.text);
	const frame = useRef<HTMLDivElement>(null);
	const place = ranges[0]?.start;
	useEffect(() => {
		if (place !== undefined) frame.current?.querySelector("[data-mark]")?.scrollIntoView({ block: "center" });
	}, [place]);
	return (
		<div className={css.page}>
			<section aria-label="Text">
				<div ref={frame} className={css.bigText}>
					<EntryText text={entry.text} ranges={ranges} charsMax={CHARS_MAX} />
				</div>
				{ranges.length > 1 && (
					<p className={css.soft}>{`What was quoted stands here ${ranges.length} times; every place is marked.`}</p>
				)}
			</section>
			<EntryFacts world={world} ledger={ledger} eyes={eyes} entry={entry} />
			<EntryLinks world={world} ledger={ledger} eyes={eyes} entry={entry} />
		</div>
	);
}

/** What the URL marks: a range of bytes, or the words of a quotation. */
function useRanges(text: string): readonly TextRange[] {
	const params = new URLSearchParams(useSearch());
	const range = rangeOfBytes(text, params.get("from"), params.get("to"));
	// An excerpt that is the whole entry marks nothing.
	if (range !== null) return range.start === 0 && range.end === text.length ? [] : [range];
	return rangesOfQuote(text, params.get("quote"));
}

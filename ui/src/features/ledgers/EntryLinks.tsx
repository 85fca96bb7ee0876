/** What was written together with an entry, and what cites it. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { keys } from "../../api/keys";
import { paths } from "../../app/paths";
import { ErrorNote } from "../../components/ErrorNote";
import { SafeText } from "../../components/SafeText";
import { type Entry, type Eyes, eyesKey, eyesQuery, type Ledger, viewerOf } from "../../model/ledger";
import { firstLine } from "../../model/text-safety";
import { Citations } from "./Citations";
import css from "./Ledgers.module.css";
import { retrieve, streamQuery, viewQuery } from "./ledger-queries";
import { SearchResult } from "./SearchResult";

export interface EntryLinksProps {
	readonly world: string;
	readonly ledger: Ledger | undefined;
	readonly eyes: Eyes;
	readonly entry: Entry;
}

/** One request writes at most 64 entries. */
const TOGETHER_MAX = 64;
/** Answers are looked for in the newest entries. */
const NEWEST = 500;

export function EntryLinks(props: EntryLinksProps) {
	return (
		<>
			<Together {...props} />
			<section aria-labelledby="cites">
				<h2 id="cites">What cites it</h2>
				<InPocket {...props} />
				<Answers {...props} />
				<Citations {...props} />
			</section>
		</>
	);
}

function Together({ world, ledger, eyes, entry }: EntryLinksProps) {
	const bundle = entry.bundle_id ?? "";
	const isAudit = eyes.kind === "audit";
	const { data, error } = useQuery({
		queryKey: keys.world(world, "together", bundle, eyesKey(eyes)),
		queryFn: ({ signal }) =>
			retrieve(world, eyes, { name: "LEDGER_GET", query_text: bundle, constraints: { limit: TOGETHER_MAX } }, signal),
		enabled: !isAudit && bundle !== "",
	});
	const others = (data?.results ?? []).filter(({ entry_id }) => entry_id !== entry.entry_id);
	return (
		<section aria-labelledby="together">
			<h2 id="together">Written together with it</h2>
			{error !== null && <ErrorNote error={error} />}
			{isAudit && (
				<p className={css.soft}>An audit shows one entry here. The stream of the audit shows what stands beside it.</p>
			)}
			{data !== undefined && others.length === 0 && (
				<p className={css.soft}>Nothing else that can be seen here came with the same request.</p>
			)}
			<ul className={css.results}>
				{others.map((result) => (
					<SearchResult key={result.entry_id} world={world} ledger={ledger} eyes={eyes} result={result} words={[]} />
				))}
			</ul>
		</section>
	);
}

function InPocket({ world, eyes, entry }: EntryLinksProps) {
	const { data } = useQuery(streamQuery(world, eyes));
	const pocket = data?.pocket ?? null;
	if (pocket === null) return null;
	const ofThis = ({ entry_id }: { readonly entry_id: string }) => entry_id === entry.entry_id;
	const dates = pocket.calendar.items.filter(ofThis).length;
	const messages = pocket.messages.items.filter(ofThis).length;
	return (
		<Line>
			{dates === 0 && messages === 0
				? "No item of the calendar or the messages stands in it."
				: `Of the pocket: ${dates} in the calendar, ${messages} in the messages.`}
		</Line>
	);
}

/** Entries that say that they answer this one. */
function Answers({ world, eyes, entry }: EntryLinksProps) {
	const { data, error } = useQuery({
		...viewQuery(world, viewerOf(eyes), { ...eyesQuery(eyes), limit: NEWEST }),
		enabled: eyes.kind !== "audit",
	});
	if (error !== null) return <ErrorNote error={error} />;
	if (data === undefined) return null;
	const answers = data.entries.filter(({ reply_to }) => reply_to != null && reply_to === entry.entry_id);
	if (answers.length === 0)
		return (
			<Line>
				{data.complete ? "No entry answers it." : `None of the newest ${data.entries.length} entries answers it.`}
			</Line>
		);
	return (
		<ul>
			{answers.map((answer) => (
				<li key={answer.entry_id} className={css.item}>
					Answered by{" "}
					<Link href={paths.entry(world, answer.entry_id ?? "", eyesQuery(eyes))} data-ref={`entry:${answer.entry_id}`}>
						<SafeText text={firstLine(answer.text)} />
					</Link>
				</li>
			))}
		</ul>
	);
}

function Line({ children }: { readonly children: ReactNode }) {
	return <p className={css.soft}>{children}</p>;
}

/** A verbatim excerpt, which leads to its place in its entry. */

import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { paths } from "../../app/paths";
import { RefChip } from "../../components/refs/RefChip";
import { SafeText } from "../../components/SafeText";
import { type Eyes, eyesQuery, isPersonId, type Ledger, labelOf, ledgerTime } from "../../model/ledger";
import { headLength, piecesOf, rangesOfWords } from "../../model/ledger-text";
import type { Schema } from "../../model/schema";
import { Audience } from "./Audience";
import css from "./Ledgers.module.css";
import { entryQuery } from "./ledger-queries";

export interface SearchResultProps {
	readonly world: string;
	readonly ledger: Ledger | undefined;
	readonly eyes: Eyes;
	readonly result: Schema<"RetrievalResult">;
	readonly words: readonly string[];
}

/** The rest is in the entry. */
const CHARS_MAX = 2_048;
const LINES_MAX = 40;

export function SearchResult({ world, ledger, eyes, result, words }: SearchResultProps) {
	const [from, to] = result.range;
	const href = paths.entry(world, result.entry_id, { from, to, ...eyesQuery(eyes) });
	const time = ledgerTime(result.created_at_world, ledger?.timezone ?? "UTC");
	const excerpt = result.verbatim_excerpt.slice(0, headLength(result.verbatim_excerpt, CHARS_MAX, LINES_MAX));
	return (
		<li className={css.result}>
			<p className={css.resultHead}>
				<AuthorName world={world} ledger={ledger} author={result.author_id} />
				<span className={css.soft}>{time === null ? result.created_at_world : `${time.day} ${time.clock}`}</span>
				{result.visibility_scope === "PRIVATE" && (
					<Readers world={world} ledger={ledger} eyes={eyes} entry={result.entry_id} />
				)}
				{result.context === true && <span className={css.soft}>has none of the words, stands beside one that has</span>}
			</p>
			<Link href={href} data-item="" data-ref={`entry:${result.entry_id}`} className={css.resultLink}>
				<span className={css.excerpt} dir="auto">
					{piecesOf(excerpt, rangesOfWords(excerpt, words)).map((piece) =>
						piece.isMarked ? (
							<mark key={piece.at} className={css.mark}>
								<SafeText text={piece.text} />
							</mark>
						) : (
							<SafeText key={piece.at} text={piece.text} />
						),
					)}
				</span>
			</Link>
		</li>
	);
}

export interface AuthorNameProps {
	readonly world: string;
	readonly ledger: Ledger | undefined;
	readonly author: string;
}

/** A person is a chip that opens its page; the operator and the ledger itself have none. */
export function AuthorName({ world, ledger, author }: AuthorNameProps) {
	if (isPersonId(author)) return <RefChip to={{ kind: "person", world, id: author }} name={labelOf(ledger, author)} />;
	const names: Readonly<Record<string, string>> = { WORLD: "the ledger’s own voice", SYSTEM: "Turnkeep" };
	return (
		<strong>
			<SafeText text={names[author] ?? labelOf(ledger, author)} />
		</strong>
	);
}

/** The excerpt only says that not everyone may see the entry; the entry says who may. */
function Readers(props: Omit<SearchResultProps, "result" | "words"> & { readonly entry: string }) {
	const { data } = useQuery(entryQuery(props.world, props.entry, props.eyes));
	if (data === undefined) return null;
	return <Audience visibility={data.visibility} author={data.author.author_id} ledger={props.ledger} />;
}

/** Where an entry comes from, and who may see it. */

import { paths } from "../../app/paths";
import { Facts } from "../../components/Card";
import { CopyButton } from "../../components/CopyButton";
import { RefChip } from "../../components/refs/RefChip";
import { SafeText } from "../../components/SafeText";
import { Time } from "../../components/Time";
import {
	audienceOf,
	audienceWords,
	type Entry,
	type Eyes,
	eyesQuery,
	type Ledger,
	labelOf,
	ledgerTime,
} from "../../model/ledger";
import { byteLength } from "../../model/ledger-text";
import { formatBytes } from "../../model/quantity";
import { parseRef } from "../../model/refs";
import css from "./Ledgers.module.css";
import { AuthorName } from "./SearchResult";

export interface EntryFactsProps {
	readonly world: string;
	readonly ledger: Ledger | undefined;
	readonly eyes: Eyes;
	readonly entry: Entry;
}

export function EntryFacts({ world, ledger, eyes, entry }: EntryFactsProps) {
	const readers = audienceOf(entry.visibility, entry.author.author_id);
	const at = entry.created_at_world ?? "";
	const time = ledgerTime(at, ledger?.timezone ?? "UTC");
	// The entry of a handoff has the handoff's id as its request.
	const handoff = parseRef(`envelope:${entry.request_id}`);
	const answered = entry.reply_to ?? null;
	return (
		<section aria-label="Facts">
			<Facts
				facts={[
					["Written by", <AuthorName key="by" world={world} ledger={ledger} author={entry.author.author_id} />],
					["Who may see it", <SafeText key="to" text={audienceWords(readers, (id) => labelOf(ledger, id))} />],
					[
						"When",
						<span key="at">
							{time === null ? at : `${time.day} ${time.clock}`} <SafeText text={ledger?.timezone ?? ""} />{" "}
							{ledger?.clock === "WALL" && (
								<span className={css.soft}>
									<Time at={at} />
								</span>
							)}
						</span>,
					],
					...(answered === null
						? []
						: [
								[
									"Answers",
									<RefChip
										key="reply"
										to={{ kind: "entry", id: answered }}
										href={paths.entry(world, answered, eyesQuery(eyes))}
									/>,
								] as const,
							]),
					[
						"Request",
						handoff === null ? <Code key="request" text={entry.request_id} /> : <RefChip key="request" to={handoff} />,
					],
					["Ref", <Code key="ref" text={`entry:${entry.entry_id ?? ""}`} />],
					["Size", formatBytes(byteLength(entry.text))],
				]}
			/>
		</section>
	);
}

function Code({ text }: { readonly text: string }) {
	return (
		<span className={css.code}>
			<code>
				<SafeText text={text} />
			</code>
			<CopyButton text={text} />
		</span>
	);
}

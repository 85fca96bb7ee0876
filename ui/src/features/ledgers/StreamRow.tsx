/** One entry of the stream: when, who where it is a person, to whom where not to all, and the words as they are. */

import { memo } from "react";
import { Link } from "wouter";
import { paths } from "../../app/paths";
import { cx } from "../../components/cx";
import { SafeText } from "../../components/SafeText";
import { type Eyes, eyesQuery, type Ledger, ledgerTime } from "../../model/ledger";
import type { StreamLine } from "../../model/ledger-stream";
import { headLength } from "../../model/ledger-text";
import { formatExact, parseTime } from "../../model/time";
import { Audience } from "./Audience";
import { EntryText } from "./EntryText";
import css from "./Ledgers.module.css";

export interface StreamRowProps {
	readonly world: string;
	readonly line: StreamLine;
	/** The day of the line before. */
	readonly dayBefore: string | null;
	readonly ledger: Ledger | undefined;
	readonly eyes: Eyes;
}

/** More of an entry is shown on its own page, so that one entry cannot fill the stream. */
const CHARS_MAX = 900;
const LINES_MAX = 12;

export const StreamRow = memo(function StreamRow({ world, line, dayBefore, ledger, eyes }: StreamRowProps) {
	const time = ledgerTime(line.at, ledger?.timezone ?? "UTC");
	const href = paths.entry(world, line.id, eyesQuery(eyes));
	return (
		<div className={css.row}>
			{time !== null && time.day !== dayBefore && <p className={css.day}>{time.day}</p>}
			<article className={cx(css.entry, css[CHANNEL_CLASS[line.channel] ?? "people"])} data-channel={line.channel}>
				<Link
					href={href}
					data-item=""
					data-ref={`entry:${line.id}`}
					className={css.when}
					title={exactTitle(line.at)}
					aria-label={`Entry of ${time === null ? line.at : `${time.day} ${time.clock}`}`}
				>
					<SafeText text={time?.clock ?? line.at} />
				</Link>
				<div className={css.words}>
					{(line.label !== null || line.visibility?.scope === "PRIVATE") && (
						<p className={css.who}>
							{line.label !== null && (
								<strong>
									<SafeText text={line.label} />
								</strong>
							)}
							<Audience
								visibility={line.visibility}
								author={line.author}
								authorLabel={line.author === null ? line.label : null}
								ledger={ledger}
							/>
						</p>
					)}
					<EntryText
						text={line.text}
						charsMax={headLength(line.text, CHARS_MAX, LINES_MAX)}
						more={<Link href={href}>Open the entry</Link>}
					/>
				</div>
			</article>
		</div>
	);
});

const CHANNEL_CLASS: Readonly<Record<string, "user" | "voice" | "people">> = {
	USER: "user",
	VOICE: "voice",
	PEOPLE: "people",
};

function exactTitle(at: string): string | undefined {
	const ms = parseTime(at);
	return ms === null ? undefined : formatExact(ms);
}

/** The pocket: the ledger's clock, its calendar and its messages. Every text is a part of an entry, and leads to it. */

import type { ReactNode } from "react";
import { Link } from "wouter";
import { paths } from "../../app/paths";
import { SafeText } from "../../components/SafeText";
import { StateWord } from "../../components/StateWord";
import { Time } from "../../components/Time";
import { type Eyes, eyesQuery, type Ledger, ledgerTime } from "../../model/ledger";
import type { Schema } from "../../model/schema";
import { ClockActions } from "./ClockActions";
import css from "./Ledgers.module.css";

export interface PocketPanelProps {
	readonly world: string;
	readonly ledger: Ledger;
	readonly pocket: Schema<"Pocket"> | null;
	readonly eyes: Eyes;
}

export function PocketPanel({ world, ledger, pocket, eyes }: PocketPanelProps) {
	const { world_time: clock } = ledger;
	const now = ledgerTime(clock.time, clock.timezone);
	return (
		<div className={css.pocket}>
			<section aria-labelledby="pocket-clock">
				<h2 id="pocket-clock">Clock</h2>
				<p>
					<time dateTime={clock.time}>{now === null ? clock.time : `${now.day} ${now.clock}`}</time>{" "}
					<SafeText text={clock.timezone} />
				</p>
				{clock.paused ? (
					<p>
						<StateWord tone="neutral" word="paused">
							by the operator
							{ledger.clock === "WALL" && (
								<>
									{" "}
									· <Time at={clock.time} format="age" />
								</>
							)}
						</StateWord>
					</p>
				) : (
					<p className={css.soft}>{CLOCK_WORDS[ledger.clock] ?? ""}</p>
				)}
				{eyes.kind === "operator" && <WriterLine ledger={ledger} />}
				{eyes.kind === "operator" && <ClockActions world={world} ledger={ledger} />}
			</section>
			{pocket !== null && !pocket.is_available && (
				<p className={css.soft}>The settings of this ledger turn its calendar and messages off.</p>
			)}
			{pocket?.is_available === true && (
				<>
					<Items title="Calendar" none="Nothing is planned." count={pocket.calendar.items.length}>
						{pocket.calendar.items.map((item) => (
							<CalendarLine key={item.item_id} world={world} zone={clock.timezone} item={item} eyes={eyes} />
						))}
					</Items>
					<Items title="Messages" none="No messages." count={pocket.messages.items.length}>
						{pocket.messages.items.map((item) => (
							<MessageLine key={item.item_id} world={world} zone={clock.timezone} item={item} eyes={eyes} />
						))}
					</Items>
				</>
			)}
		</div>
	);
}

/** An attached writer whose context was full began anew, with quotations of what it must know. */
function WriterLine({ ledger: { writer, rehydrations } }: { readonly ledger: Ledger }) {
	if (writer === "silence") return null;
	const { count, last } = rehydrations;
	return (
		<p className={css.soft}>
			The attached writer is <SafeText text={writer} />.
			{last != null &&
				` Its context was full ${count === 1 ? "once" : `${count} times`}; the last time it began anew with ${last.carried_entries} entries, without ${last.dropped_entries}. All can still be found.`}
		</p>
	);
}

const CLOCK_WORDS: Readonly<Record<string, string>> = {
	WALL: "follows the server’s clock at each entry",
	STEP: "moves one second with each request",
};

interface ItemsProps {
	readonly title: string;
	readonly none: string;
	readonly count: number;
	readonly children: ReactNode;
}

function Items({ title, none, count, children }: ItemsProps) {
	return (
		<section aria-label={title}>
			<h2>{title}</h2>
			{count === 0 ? <p className={css.soft}>{none}</p> : <ul>{children}</ul>}
		</section>
	);
}

interface LineProps<Item> {
	readonly world: string;
	readonly zone: string;
	readonly item: Item;
	readonly eyes: Eyes;
}

function CalendarLine({ world, zone, item, eyes }: LineProps<Schema<"CalendarItem">>) {
	const quote = (text: string) => <Quote world={world} entry={item.entry_id} text={text} eyes={eyes} />;
	return (
		<li className={css.item}>
			{item.time != null && <p className={css.soft}>{momentWords(item.time, zone)}</p>}
			{item.title != null && <p>{quote(item.title)}</p>}
			{item.location != null && <p>{quote(item.location)}</p>}
			{item.notes != null && <p>{quote(item.notes)}</p>}
		</li>
	);
}

function MessageLine({ world, zone, item, eyes }: LineProps<Schema<"MessageItem">>) {
	return (
		<li className={css.item}>
			<p className={css.soft}>
				{item.from != null && <SafeText text={item.from} />} {momentWords(item.time, zone)}
			</p>
			<p>
				<Quote world={world} entry={item.entry_id} text={item.text} eyes={eyes} />
			</p>
		</li>
	);
}

function momentWords(time: string, zone: string): string {
	const moment = ledgerTime(time, zone);
	return moment === null ? time : `${moment.day} ${moment.clock.slice(0, 5)}`;
}

/** More of a quotation is in its entry. */
const QUOTE_CHARS_MAX = 300;

/** A verbatim part of an entry, which leads to its place there. */
function Quote({ world, entry, text, eyes }: { world: string; entry: string; text: string; eyes: Eyes }) {
	const shown = [...text.slice(0, 2 * QUOTE_CHARS_MAX)].slice(0, QUOTE_CHARS_MAX).join("");
	// The place is found by the words themselves, so these must fit into a URL.
	const href = paths.entry(world, entry, { quote: shown, ...eyesQuery(eyes) });
	return (
		<Link href={href} data-ref={`entry:${entry}`} className={css.quote}>
			<SafeText text={shown} />
			{shown.length < text.length && "…"}
		</Link>
	);
}

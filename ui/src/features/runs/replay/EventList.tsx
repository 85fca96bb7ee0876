/** What happened, one line an event, with the moment that is shown marked. Streams are left out. */

import { useMemo } from "react";
import { cx } from "../../../components/cx";
import { VirtualList } from "../../../components/VirtualList";
import { countUpTo, eventWords, isStep, type ReplayLog } from "../../../model/replay";
import type { RunEvent } from "../../../model/run";
import { firstLine } from "../../../model/text-safety";
import { formatClockSeconds } from "../../../model/time";
import css from "./Replay.module.css";

export interface EventListProps {
	readonly log: ReplayLog;
	readonly pages: number;
	readonly seq: number;
	readonly names: ReadonlyMap<string, string>;
	readonly goTo: (seq: number) => void;
}

export function EventList({ log, pages, seq, names, goTo }: EventListProps) {
	// biome-ignore lint/correctness/useExhaustiveDependencies: the log grows in place; `pages` says when.
	const events = useMemo(() => log.events.filter(isStep), [log, pages]);
	const current = lastUpTo(events, seq);
	return (
		<div className={css.events}>
			<VirtualList
				label="Events"
				items={events}
				itemKey={(event) => event.id}
				estimate={26}
				scrollTo={current}
				renderItem={(event, at) => (
					<button
						type="button"
						className={cx(css.event, at === current && css.current, (event.seq ?? 0) > seq && css.later)}
						aria-current={at === current ? "step" : undefined}
						onClick={() => event.seq != null && goTo(event.seq)}
					>
						<span className={css.number}>{event.seq}</span>
						<span className={css.number}>{formatClockSeconds(Date.parse(event.ts))}</span>
						<span className={css.words}>
							{event.nodeId != null && <strong>{firstLine(names.get(event.nodeId) ?? "an agent", 30)} </strong>}
							{eventWords(event)}
						</span>
					</button>
				)}
			/>
		</div>
	);
}

/** The place of the last event with a number up to this one; null if there is none. */
function lastUpTo(events: readonly RunEvent[], seq: number): number | null {
	const count = countUpTo(events, seq);
	return count === 0 ? null : count - 1;
}

/** Goes through the log: by the slider, from one event to the next, or to a place in the list. */

import { IconButton } from "../../../components/Button";
import { useKeys } from "../../../components/keys";
import { Time } from "../../../components/Time";
import { formatCount } from "../../../model/quantity";
import { eventWords, nextStep, type ReplayLog } from "../../../model/replay";
import css from "./Replay.module.css";

export interface ScrubberProps {
	readonly log: ReplayLog;
	readonly seq: number;
	readonly goTo: (seq: number) => void;
}

export function Scrubber({ log, seq, goTo }: ScrubberProps) {
	const count = log.countUpTo(seq);
	const event = log.events[count - 1];
	const step = (by: 1 | -1) => () => {
		const next = nextStep(log.events, by === 1 ? count : count - 2, by);
		if (next !== null) goTo(next);
		return next !== null;
	};
	useKeys("Replay", [
		{ key: "j", does: "next event", run: step(1) },
		{ key: "k", does: "previous event", run: step(-1) },
	]);
	const atEnd = seq >= log.lastSeq;
	return (
		<div className={css.scrubber}>
			<IconButton
				label="Previous event"
				icon="back"
				blocked={count <= 1 ? "This is the first event" : null}
				onClick={step(-1)}
			/>
			<input
				type="range"
				className={css.slider}
				aria-label="Place in the log"
				aria-valuetext={event === undefined ? "before the first event" : `event ${seq}: ${eventWords(event)}`}
				min={Math.min(1, log.lastSeq)}
				max={log.lastSeq}
				value={seq}
				onChange={(change) => goTo(Number(change.target.value))}
			/>
			<IconButton label="Next event" icon="right" blocked={atEnd ? "This is the last event" : null} onClick={step(1)} />
			<span className={css.place}>
				event {formatCount(seq)} of {formatCount(log.lastSeq)}
				{event !== undefined && (
					<>
						{" · "}
						<Time at={event.ts} format="exact" />
					</>
				)}
			</span>
		</div>
	);
}

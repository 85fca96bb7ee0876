/** Numbers over the last ten minutes: a plot, and as text the newest and the highest ones, or those under the pointer. */

import { lazy, Suspense, useState } from "react";
import { loadPart } from "../../api/load-part";
import { formatClockSeconds } from "../../model/time";
import css from "./Health.module.css";
import type { PlotData, PlotLine } from "./plot-series";

const PlotCanvas = lazy(() => loadPart(() => import("./PlotCanvas")));

export interface PlotProps {
	readonly title: string;
	/** What is counted, where the title does not say it. */
	readonly note?: string;
	readonly data: PlotData;
	readonly format: (value: number) => string;
}

export function Plot({ title, note, data, format }: PlotProps) {
	const [point, setPoint] = useState<number | null>(null);
	const shown = point === null || point >= data.times.length ? data.times.length - 1 : point;
	const time = data.times[shown];
	return (
		<figure className={css.plot}>
			<figcaption>
				<strong>{title}</strong>
				{note !== undefined && <span className={css.soft}> {note}</span>}
			</figcaption>
			<p className={css.numbers}>
				{data.lines.map((line, at) => (
					<LineValue
						key={line.name}
						line={line}
						at={shown}
						format={format}
						isDashed={at === 1}
						isOne={data.lines.length === 1}
					/>
				))}
				{point !== null && time !== undefined && <span className={css.soft}>at {formatClockSeconds(time)}</span>}
			</p>
			<Suspense fallback={<div className={css.canvas} />}>
				<PlotCanvas data={data} format={format} onPoint={setPoint} />
			</Suspense>
		</figure>
	);
}

interface LineValueProps {
	readonly line: PlotLine;
	readonly at: number;
	readonly format: (value: number) => string;
	readonly isDashed: boolean;
	readonly isOne: boolean;
}

function LineValue({ line, at, format, isDashed, isOne }: LineValueProps) {
	const value = line.values[at];
	const highest = line.values.reduce<number | null>(
		(most, each) => (each === null ? most : Math.max(most ?? 0, each)),
		null,
	);
	return (
		<span>
			{!isOne && <span className={isDashed ? css.dashed : css.solid} aria-hidden="true" />}
			{!isOne && `${line.name} `}
			<strong>{value == null ? "none" : format(value)}</strong>
			{highest !== null && <span className={css.soft}>{` of at most ${format(highest)}`}</span>}
		</span>
	);
}

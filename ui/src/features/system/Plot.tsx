/** A small line plot of one number over the last minutes. The newest value and the highest one stand beside it as text. */

import css from "./Health.module.css";

const WIDTH = 240;
const HEIGHT = 48;

export interface PlotProps {
	readonly title: string;
	readonly values: readonly number[];
	readonly format: (value: number) => string;
}

export function Plot({ title, values, format }: PlotProps) {
	const highest = Math.max(...values, 0);
	const newest = values.at(-1);
	return (
		<figure className={css.plot}>
			<figcaption>{title}</figcaption>
			<p className={css.newest}>{newest === undefined ? "…" : format(newest)}</p>
			<svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true" className={css.line}>
				<polyline points={pointsOf(values, highest)} />
			</svg>
			<p className={css.highest}>{newest === undefined ? "" : `at most ${format(highest)}`}</p>
		</figure>
	);
}

/** The newest value is at the right edge, zero at the bottom. */
function pointsOf(values: readonly number[], highest: number): string {
	const step = WIDTH / Math.max(values.length - 1, 1);
	const scale = highest === 0 ? 0 : (HEIGHT - 2) / highest;
	return values.map((value, at) => `${(at * step).toFixed(1)},${(HEIGHT - 1 - value * scale).toFixed(1)}`).join(" ");
}

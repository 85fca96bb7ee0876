/** Draws the lines of a plot with uPlot. It is loaded when a plot is shown; what it shows also stands beside it as text. */

import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { usePreferences } from "../../api/preferences";
import { serverNow } from "../../api/server-clock";
import { useMedia } from "../../components/useMedia";
import { formatClock } from "../../model/time";
import css from "./Health.module.css";
import type { PlotData } from "./plot-series";

const HEIGHT_PX = 110;
const AXIS_PX = 58;
/** All plots show the same time, so that what happened together stands together. */
const SPAN_S = 10 * 60;
/** The lines differ by their form too, not only by their colour. */
const DASHES: readonly number[][] = [[], [4, 3]];

export interface PlotCanvasProps {
	readonly data: PlotData;
	readonly format: (value: number) => string;
	/** The time under the pointer, as its place among the times; null when it leaves. */
	readonly onPoint: (at: number | null) => void;
}

export default function PlotCanvas({ data, format, onPoint }: PlotCanvasProps) {
	const host = useRef<HTMLDivElement>(null);
	const plot = useRef<uPlot>(null);
	const latest = useRef({ data, format, onPoint });
	useEffect(() => {
		latest.current = { data, format, onPoint };
	});
	const isDark = useMedia("(prefers-color-scheme: dark)");
	const { theme } = usePreferences();
	const look = `${theme} ${isDark} ${data.lines.length}`;
	// biome-ignore lint/correctness/useExhaustiveDependencies: `look` says when the colours or the number of lines change.
	useEffect(() => {
		const element = host.current;
		if (element === null) return;
		const made = new uPlot(optionsOf(element, latest), alignedOf(latest.current.data), element);
		plot.current = made;
		const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
		observer.observe(element);
		return () => {
			observer.disconnect();
			made.destroy();
			plot.current = null;
		};
	}, [look]);
	useEffect(() => plot.current?.setData(alignedOf(data)), [data]);
	return <div ref={host} className={css.canvas} aria-hidden="true" />;
}

function alignedOf({ times, lines }: PlotData): uPlot.AlignedData {
	return [times.map((time) => time / 1000), ...lines.map(({ values }) => [...values])];
}

type Latest = { readonly current: PlotCanvasProps };

function optionsOf(element: HTMLElement, latest: Latest): uPlot.Options {
	const [line, text, grid] = ["--accent", "--text-soft", "--line"].map((name) => colourOf(element, name));
	const font = `11px ${getComputedStyle(element).fontFamily}`;
	const axis = { stroke: text ?? "", font, ticks: { show: false }, grid: { stroke: grid ?? "", width: 1 } };
	return {
		width: element.clientWidth,
		height: HEIGHT_PX,
		legend: { show: false },
		padding: [8, 8, 0, 0],
		cursor: { drag: { x: false, y: false }, points: { size: 6 }, y: false, sync: { key: "health" } },
		scales: { x: { range: (_, __, max) => spanUntil(max) }, y: { range: (_, __, max) => [0, niceEnd(max)] } },
		axes: [
			{ ...axis, size: 22, space: 70, values: (_, ticks) => ticks.map((tick) => formatClock(tick * 1000)) },
			{ ...axis, size: AXIS_PX, space: 36, values: (_, ticks) => ticks.map((tick) => latest.current.format(tick)) },
		],
		series: [
			{},
			...latest.current.data.lines.map((_, at) => ({
				stroke: line ?? "",
				width: 1.5,
				dash: DASHES[at % DASHES.length] ?? [],
				points: { show: false },
			})),
		],
		hooks: { setCursor: [({ cursor }) => latest.current.onPoint(cursor.idx ?? null)] },
	};
}

/** Before the second reading there is nothing to show, but the plot already has its place in time. */
function spanUntil(newest: number | null): [number, number] {
	const end = newest ?? serverNow() / 1000;
	return [end - SPAN_S, end];
}

/** A line of zeros lies at the bottom, and a peak does not touch the top. */
function niceEnd(max: number | null): number {
	return max === null || max <= 0 ? 1 : max * 1.1;
}

/** A custom property as a colour that a canvas takes: `light-dark()` is resolved by the browser. */
function colourOf(element: HTMLElement, name: string): string {
	const probe = document.createElement("span");
	probe.style.color = `var(${name})`;
	element.append(probe);
	const { color } = getComputedStyle(probe);
	probe.remove();
	return color;
}

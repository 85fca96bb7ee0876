/** The requests by route since the server started: how many, how fast, and how many went wrong. */

import { type Column, DataTable } from "../../components/DataTable";
import { SafeText } from "../../components/SafeText";
import { formatCount, formatNumberOf } from "../../model/quantity";
import { formatLatency, meanTime, type RouteMetrics, timeOfShare } from "../../model/request-metrics";
import css from "./Health.module.css";

const ROUTES_MAX = 12;

export function RoutesTable({ routes }: { readonly routes: readonly RouteMetrics[] }) {
	const hidden = routes.length - ROUTES_MAX;
	return (
		<section className={css.group}>
			<h2>Requests since the start</h2>
			{routes.length === 0 && <p className={css.soft}>No request was answered yet, besides those of this page.</p>}
			{routes.length > 0 && (
				<DataTable
					label="Requests by route"
					columns={COLUMNS}
					rows={routes.slice(0, ROUTES_MAX)}
					rowKey={({ method, route }) => `${method} ${route}`}
				/>
			)}
			{hidden > 0 && (
				<p className={css.soft}>
					{`${formatNumberOf(hidden, "route")} with fewer requests ${hidden === 1 ? "is" : "are"} not shown. `}
					<a href="/metrics" download="metrics.txt">
						Download all metrics
					</a>
				</p>
			)}
		</section>
	);
}

const COLUMNS: readonly Column<RouteMetrics>[] = [
	{
		id: "route",
		header: "Route",
		minWidth: 170,
		grow: 1,
		cell: ({ method, route }) => (
			<code>
				<SafeText text={`${method} ${route}`} />
			</code>
		),
	},
	{ id: "answered", header: "Answered", minWidth: 80, align: "end", cell: ({ answered }) => formatCount(answered) },
	{ id: "mean", header: "Mean", minWidth: 70, align: "end", cell: (each) => latency(meanTime(each)) },
	{
		id: "slow",
		header: "95 % within",
		minWidth: 90,
		align: "end",
		drop: 2,
		cell: ({ buckets }) => latency(timeOfShare([], buckets, 0.95)),
	},
	{
		id: "wrong",
		header: "Went wrong",
		minWidth: 150,
		drop: 1,
		cell: ({ refused, failed }) => <Wrong refused={refused} failed={failed} />,
	},
];

function latency(ms: number | null): string {
	return ms === null ? "—" : formatLatency(ms);
}

function Wrong({ refused, failed }: { readonly refused: number; readonly failed: number }) {
	const words = [
		...(failed > 0 ? [`${formatCount(failed)} failed`] : []),
		...(refused > 0 ? [`${formatCount(refused)} refused`] : []),
	];
	return words.length === 0 ? <span className={css.soft}>none</span> : words.join(", ");
}

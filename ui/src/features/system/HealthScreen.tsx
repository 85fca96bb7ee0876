/** How the server does: whether it can write, what it holds, and its numbers over the last ten minutes. */

import { useQuery } from "@tanstack/react-query";
import { Facts } from "../../components/Card";
import { ErrorNote } from "../../components/ErrorNote";
import { SafeText } from "../../components/SafeText";
import { Skeleton } from "../../components/Skeleton";
import { Time } from "../../components/Time";
import { formatBytes, formatCount, formatNumberOf } from "../../model/quantity";
import css from "./Health.module.css";
import { HealthPlots } from "./HealthPlots";
import { RoutesTable } from "./RoutesTable";
import { ServerState } from "./ServerState";
import { SystemFrame } from "./SystemFrame";
import { durabilityWords, settingsQuery } from "./server-settings";
import { type ServerStats, statsQuery } from "./stats-query";
import { PERIOD_MS, useMetrics } from "./useMetrics";

export default function HealthScreen() {
	const { data, error, isPending, refetch } = useQuery({ ...statsQuery(), refetchInterval: PERIOD_MS });
	const { readings, requests, error: fault } = useMetrics();
	const newest = readings.at(-1);
	return (
		<SystemFrame page="health">
			{isPending && <Skeleton lines={4} />}
			{data !== undefined && <ServerState stats={data} />}
			{fault !== null && (
				<ErrorNote
					context={newest === undefined ? "There is nothing to plot." : "The plots stand still."}
					error={fault}
				/>
			)}
			{fault !== null && newest !== undefined && (
				<p className={css.soft}>
					What is shown is from <Time at={newest.at} />.
				</p>
			)}
			{error !== null && fault === null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && <StoreFacts stats={data} />}
			<HealthPlots readings={readings} />
			{newest !== undefined && <RoutesTable routes={requests.routes} />}
		</SystemFrame>
	);
}

function StoreFacts({ stats }: { readonly stats: ServerStats }) {
	return (
		<div className={css.facts}>
			<Facts
				facts={[
					["Durability", <Durability key="durability" />],
					["Turns", formatCount(stats.turns)],
					[
						"Histories",
						`${formatCount(stats.contexts - stats.world_contexts)}, and ${formatCount(stats.world_contexts)} of ledgers`,
					],
					["Payloads", `${formatCount(stats.blobs)}, ${formatBytes(stats.blob_stored_bytes)} as kept`],
					["Log", `${formatBytes(stats.log_bytes)}, position ${formatCount(stats.log_position)}`],
					["Index", formatBytes(stats.index_bytes)],
					["Types", `${formatCount(stats.types)}, from ${formatNumberOf(stats.bundles, "publication")}`],
				]}
			/>
		</div>
	);
}

function Durability() {
	const { data, isPending } = useQuery(settingsQuery());
	if (isPending) return null;
	const setting = data?.settings.find(({ name }) => name === "durability");
	if (setting !== undefined) return <SafeText text={durabilityWords(setting.value)} />;
	return (
		<span className={css.soft}>
			<code>turnkeep up</code> printed it when it started
		</span>
	);
}

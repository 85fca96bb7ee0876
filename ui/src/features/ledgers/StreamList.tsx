/** The stream: what a reader may see, in order, with the newest at the end. */

import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Button } from "../../components/Button";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { listBindings, useKeys } from "../../components/keys";
import { Skeleton } from "../../components/Skeleton";
import { VirtualList } from "../../components/VirtualList";
import { type Eyes, type Ledger, ledgerTime } from "../../model/ledger";
import type { LedgerStream } from "../../model/ledger-stream";
import css from "./Ledgers.module.css";
import { loadEarlier, streamQuery } from "./ledger-queries";
import { StreamRow } from "./StreamRow";

export interface StreamListProps {
	readonly world: string;
	readonly ledger: Ledger | undefined;
	readonly eyes: Eyes;
}

export function StreamList({ world, ledger, eyes }: StreamListProps) {
	const { data, error, isPending, refetch } = useQuery(streamQuery(world, eyes));
	const frame = useRef<HTMLDivElement>(null);
	useKeys(
		"Stream",
		listBindings(() => frame.current),
	);
	if (isPending) return <Skeleton lines={8} />;
	return (
		<div ref={frame} className={css.streamFrame}>
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data?.isCut === true && (
				<p className={css.cut}>
					There is more than was read at once. <Button onClick={() => void refetch()}>Read on</Button>
				</p>
			)}
			{data !== undefined && data.lines.length === 0 && <EmptyStream world={world} eyes={eyes} />}
			{data !== undefined && data.lines.length > 0 && (
				<Entries world={world} ledger={ledger} eyes={eyes} stream={data} />
			)}
		</div>
	);
}

function Entries({ world, ledger, eyes, stream }: StreamListProps & { readonly stream: LedgerStream }) {
	const [failure, setFailure] = useState<unknown>(null);
	const isLoading = useRef(false);
	const zone = ledger?.timezone ?? "UTC";
	const readEarlier = async () => {
		if (stream.earlierThan === null || isLoading.current) return;
		isLoading.current = true;
		setFailure(null);
		await loadEarlier(world, eyes).catch(setFailure);
		isLoading.current = false;
	};
	const dayAt = (at: number) => {
		const line = stream.lines[at];
		return line === undefined ? null : (ledgerTime(line.at, zone)?.day ?? null);
	};
	return (
		<>
			{failure !== null && (
				<ErrorNote context="Earlier entries were not read." error={failure} onRetry={() => void readEarlier()} />
			)}
			<VirtualList
				label="Entries"
				items={stream.lines}
				itemKey={(line) => line.id}
				estimate={44}
				followsEnd
				onReachStart={() => void readEarlier()}
				renderItem={(line, at) => (
					<StreamRow world={world} line={line} dayBefore={dayAt(at - 1)} ledger={ledger} eyes={eyes} />
				)}
			/>
		</>
	);
}

function EmptyStream({ world, eyes }: { readonly world: string; readonly eyes: Eyes }) {
	if (eyes.kind === "person")
		return (
			<EmptyState title="Nothing that this person can see yet">
				What is written to everyone, or to them, would be here.
			</EmptyState>
		);
	return (
		<EmptyState title="No entries yet" command={`turnkeep invoke ${world} "Good morning."`}>
			Everything that the operator and the people of this ledger write would be here, in order. Write the first entry
			below, or let an agent write it.
		</EmptyState>
	);
}

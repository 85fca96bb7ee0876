/** The ring of a session's captured turns, newest first. On a narrow window columns go: size, remarks, time. */

import { useQuery } from "@tanstack/react-query";
import { paths } from "../../app/paths";
import { FilterChip } from "../../components/Chip";
import { type Column, DataTable } from "../../components/DataTable";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { Time } from "../../components/Time";
import { useQueryParam } from "../../components/useQueryParam";
import { formatBytes } from "../../model/quantity";
import { type CapturedTurnInfo, type Session, turnFlags } from "../../model/session";
import { firstLine } from "../../model/text-safety";
import css from "./Sessions.module.css";
import { capturedTurnsQuery } from "./session-requests";

const COLUMNS: readonly Column<CapturedTurnInfo>[] = [
	{
		id: "words",
		header: "Captured turn",
		minWidth: 200,
		grow: 1,
		cell: ({ seq, preview }) => (
			<>
				<span className={css.soft}>{`#${seq} `}</span>
				{firstLine(preview ?? "", 160) || "without words"}
			</>
		),
	},
	{ id: "flags", header: "Remarks", minWidth: 180, drop: 2, cell: (turn) => turnFlags(turn).join(", ") },
	{
		id: "size",
		header: "Size",
		minWidth: 80,
		drop: 1,
		align: "end",
		cell: ({ byte_length }) => formatBytes(byte_length),
	},
	{
		id: "time",
		header: "Completed",
		minWidth: 100,
		align: "end",
		cell: ({ timestamp }) => <Time at={timestamp} />,
	},
];

export function CapturedTurns({ session }: { readonly session: Session }) {
	const [all, setAll] = useQueryParam("all");
	const isAll = all === "1";
	const { data, error, isPending, refetch } = useQuery(capturedTurnsQuery(session.session, isAll));
	return (
		<div className={css.part}>
			<p className={css.row}>
				<FilterChip isOn={isAll} onToggle={() => setAll(isAll ? null : "1")}>
					Also what was printed without a prompt
				</FilterChip>
			</p>
			{isPending && <Skeleton lines={6} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data?.length === 0 && (
				<EmptyState title="No captured turn yet">
					Enter something in the terminal: what the program answers becomes a captured turn, and stands here when the
					prompt is back.
				</EmptyState>
			)}
			{data !== undefined && data.length > 0 && (
				<DataTable
					label="Captured turns"
					columns={COLUMNS}
					rows={data}
					rowKey={({ turn_id }) => turn_id}
					rowHref={({ seq }) => paths.capturedTurn(session.session, seq)}
					rowRef={({ seq }) => ({ kind: "capturedTurn", session: session.session, seq })}
				/>
			)}
		</div>
	);
}

/** Sessions as a table. On a narrow window columns go: preset, shared, captured turns, age. */

import { paths } from "../../app/paths";
import { type Column, DataTable } from "../../components/DataTable";
import { SafeText } from "../../components/SafeText";
import { Time } from "../../components/Time";
import { type Session, sessionName } from "../../model/session";
import { firstLine } from "../../model/text-safety";
import { SessionState } from "./SessionState";
import css from "./Sessions.module.css";

const COLUMNS: readonly Column<Session>[] = [
	{ id: "name", header: "Session", minWidth: 120, cell: (each) => <SafeText text={sessionName(each)} /> },
	{ id: "state", header: "State", minWidth: 190, grow: 3, cell: (each) => <SessionState session={each} /> },
	{
		id: "preset",
		header: "Preset",
		minWidth: 80,
		drop: 1,
		cell: (each) => (each.preset === undefined ? "none" : <SafeText text={each.preset} />),
	},
	{
		id: "shared",
		header: "Terminal",
		minWidth: 90,
		drop: 2,
		cell: ({ shared, connected }) => (shared && connected ? "shared" : "private"),
	},
	{ id: "turns", header: "Captured turns", minWidth: 110, drop: 3, align: "end", cell: ({ turns }) => turns },
	{
		id: "last",
		header: "Last captured turn",
		minWidth: 200,
		drop: 5,
		grow: 3,
		cell: ({ preview }) => (preview === undefined ? "none yet" : <Preview text={preview} />),
	},
	{
		id: "age",
		header: "Age",
		minWidth: 90,
		drop: 4,
		align: "end",
		cell: ({ last_turn_at }) => (last_turn_at === undefined ? "" : <Time at={last_turn_at} />),
	},
];

function Preview({ text }: { readonly text: string }) {
	return <span className={css.preview}>{firstLine(text, 160)}</span>;
}

export function SessionsTable({ sessions }: { readonly sessions: readonly Session[] }) {
	return (
		<DataTable
			label="Sessions"
			columns={COLUMNS}
			rows={sessions}
			rowKey={({ session }) => session}
			rowHref={({ session }) => paths.session(session)}
			rowRef={({ session }) => ({ kind: "session", id: session })}
		/>
	);
}

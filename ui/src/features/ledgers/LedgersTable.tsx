/** The ledgers: who is in them, what was said last, and which runs use them. */

import { useQuery } from "@tanstack/react-query";
import { paths } from "../../app/paths";
import { type Column, DataTable } from "../../components/DataTable";
import { RefChip } from "../../components/refs/RefChip";
import { SafeText } from "../../components/SafeText";
import { StateWord } from "../../components/StateWord";
import { Time } from "../../components/Time";
import { authorWords, joinNames, type Ledger, labelOf, ledgerTime, OPERATOR_ID } from "../../model/ledger";
import type { RunSummary } from "../../model/run-summary";
import { firstLine } from "../../model/text-safety";
import css from "./Ledgers.module.css";
import { viewQuery } from "./ledger-queries";

export interface LedgersTableProps {
	readonly ledgers: readonly Ledger[];
	readonly runs: readonly RunSummary[];
}

export function LedgersTable({ ledgers, runs }: LedgersTableProps) {
	const columns: Column<Ledger>[] = [
		{ id: "name", header: "Ledger", minWidth: 120, cell: ({ world_id }) => <SafeText text={world_id} /> },
		{ id: "last", header: "Last entry", minWidth: 200, grow: 1, cell: (ledger) => <LastEntry ledger={ledger} /> },
		{ id: "people", header: "People", minWidth: 200, drop: 1, cell: (ledger) => <People ledger={ledger} /> },
		{
			id: "runs",
			header: "Linked runs",
			minWidth: 180,
			drop: 2,
			cell: ({ world_id }) => <LinkedRuns runs={runs.filter(({ world }) => world === world_id)} />,
		},
		{ id: "clock", header: "Clock", minWidth: 150, drop: 3, cell: (ledger) => <Clock ledger={ledger} /> },
	];
	return (
		<DataTable
			label="Ledgers"
			columns={columns}
			rows={ledgers}
			rowKey={({ world_id }) => world_id}
			rowHref={({ world_id }) => paths.ledger(world_id)}
			rowRef={({ world_id }) => ({ kind: "world", name: world_id })}
		/>
	);
}

/** So many names say who is there; the rest is a number. */
const NAMES_MAX = 3;

function People({ ledger }: { readonly ledger: Ledger }) {
	const names = ledger.persons.map(({ person_id }) => labelOf(ledger, person_id));
	if (names.length === 0)
		return <span className={css.soft}>{ledger.registry === "OPEN" ? "anyone" : "nobody yet"}</span>;
	const shown = names.slice(0, NAMES_MAX);
	const more = names.length - shown.length;
	return <SafeText text={more > 0 ? `${shown.join(", ")} and ${more} more` : joinNames(shown)} />;
}

/** The newest entry that the operator may see. */
function LastEntry({ ledger }: { readonly ledger: Ledger }) {
	const { data, error } = useQuery(viewQuery(ledger.world_id, OPERATOR_ID, { limit: 1 }));
	if (error !== null) return <span className={css.soft}>could not be read</span>;
	const entry = data?.entries.at(-1);
	if (data !== undefined && entry === undefined) return <span className={css.soft}>nothing yet</span>;
	if (entry === undefined) return null;
	return (
		<span className={css.cell}>
			<span className={css.soft}>{authorWords(ledger, entry.author)}: </span>
			{firstLine(entry.text)}
		</span>
	);
}

function LinkedRuns({ runs }: { readonly runs: readonly RunSummary[] }) {
	const [newest] = runs;
	if (newest === undefined) return <span className={css.soft}>none</span>;
	return (
		<>
			<RefChip to={`run:${newest.id}`} name={newest.title} />
			{runs.length > 1 && <span className={css.soft}>{` and ${runs.length - 1} more`}</span>}
		</>
	);
}

function Clock({ ledger: { clock, world_time } }: { readonly ledger: Ledger }) {
	if (world_time.paused)
		return (
			<StateWord tone="neutral" word="paused">
				by the operator
			</StateWord>
		);
	if (clock === "WALL") return <Time at={world_time.time} />;
	const time = ledgerTime(world_time.time, world_time.timezone);
	return time === null ? world_time.time : `${time.day} ${time.clock}`;
}

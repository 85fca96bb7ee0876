import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { runsQuery } from "../../api/queries";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { FilterChip } from "../../components/Chip";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { filterRuns, RUN_FILTERS, readRunFilter, runFilterWord } from "../../model/run-list";
import { ImportRunDialog } from "./list/ImportRunDialog";
import css from "./list/List.module.css";
import { RunsTable } from "./list/RunsTable";

/** So many runs are shown at first; older ones on request. */
const SHOWN_FIRST = 200;

/** All runs, newest first. */
export default function RunsScreen() {
	const { data, error, isPending, refetch } = useQuery(runsQuery());
	const [show, setShow] = useQueryParam("show");
	const [isAll, setAll] = useState(false);
	const [isImporting, setImporting] = useState(false);
	const filter = readRunFilter(show);
	const runs = filterRuns(data ?? [], filter);
	const shown = isAll ? runs : runs.slice(0, SHOWN_FIRST);
	const isEmpty = data !== undefined && data.length === 0;
	return (
		<Page
			title="Runs"
			actions={
				<>
					<Button onClick={() => setImporting(true)}>Import a run</Button>
					<Link href={paths.newRun()} className={css.primary}>
						Start a run
					</Link>
				</>
			}
			bar={
				isEmpty || data === undefined
					? undefined
					: RUN_FILTERS.map((each) => (
							<FilterChip
								key={each}
								isOn={filter === each}
								count={filterRuns(data, each).length}
								onToggle={() => setShow(filter === each ? null : each)}
							>
								{runFilterWord(each)}
							</FilterChip>
						))
			}
		>
			{isPending && <Skeleton lines={6} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{isEmpty && (
				<EmptyState
					title="No runs yet"
					command={'turnkeep run new "Fix the failing test"'}
					action={
						<Link href={paths.newRun()} className={css.primary}>
							Start a run
						</Link>
					}
				>
					A run is a graph of agents that work on one goal in one directory. Each run would be a line here, with its
					state, its agents and its cost.
				</EmptyState>
			)}
			{runs.length > 0 && <RunsTable runs={shown} />}
			{data !== undefined && !isEmpty && runs.length === 0 && <p role="status">No run fits the filter.</p>}
			{shown.length < runs.length && (
				<Button onClick={() => setAll(true)}>{`Show ${runs.length - shown.length} older runs`}</Button>
			)}
			{isImporting && <ImportRunDialog onClose={() => setImporting(false)} />}
		</Page>
	);
}

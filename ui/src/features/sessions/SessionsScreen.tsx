import { useQuery } from "@tanstack/react-query";
import { FilterChip } from "../../components/Chip";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import { useQueryParam } from "../../components/useQueryParam";
import { inUrgency, type Session } from "../../model/session";
import { SessionsClosed } from "./SessionsClosed";
import { SessionsTable } from "./SessionsTable";
import { sessionsAnswerQuery } from "./session-requests";

const FILTERS = {
	blocked: { word: "Waits for you", holds: (each: Session) => each.connected && each.state === "blocked" },
	working: { word: "Working", holds: (each: Session) => each.connected && each.state === "working" },
	ended: { word: "Ended", holds: (each: Session) => !each.connected },
} as const;
type Filter = keyof typeof FILTERS;
const FILTER_NAMES = Object.keys(FILTERS) as Filter[];

/** The wrapped terminals of this machine. */
export default function SessionsScreen() {
	const { data, error, isPending, refetch } = useQuery(sessionsAnswerQuery());
	const [show, setShow] = useQueryParam("show");
	const filter = FILTER_NAMES.find((name) => name === show) ?? null;
	const all = data?.kind === "shown" ? data.sessions : [];
	const shown = inUrgency(filter === null ? all : all.filter(FILTERS[filter].holds));
	return (
		<Page
			title="Sessions"
			bar={
				all.length < 2 && filter === null
					? undefined
					: FILTER_NAMES.map((name) => (
							<FilterChip
								key={name}
								isOn={filter === name}
								count={all.filter(FILTERS[name].holds).length}
								onToggle={() => setShow(filter === name ? null : name)}
							>
								{FILTERS[name].word}
							</FilterChip>
						))
			}
		>
			{isPending && <Skeleton lines={6} />}
			{error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data?.kind === "closed" && <SessionsClosed reason={data.reason} />}
			{data?.kind === "shown" && all.length === 0 && (
				<EmptyState title="No wrapped terminals" command="turnkeep wrap -- claude">
					Run a program in a wrapped terminal, and it would be a line here: what it does, and the last thing it said.
					What is captured stays in memory until you keep it. Add <code>--share</code> to see the terminal here too.
				</EmptyState>
			)}
			{shown.length > 0 && <SessionsTable sessions={shown} />}
			{all.length > 0 && shown.length === 0 && <p role="status">No session fits the filter.</p>}
		</Page>
	);
}

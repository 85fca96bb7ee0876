import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { navigate } from "wouter/use-browser-location";
import { isNotFound } from "../../api/errors";
import { paths } from "../../app/paths";
import { CopyButton } from "../../components/CopyButton";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { useKeys } from "../../components/keys";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import { Segments } from "../../components/Tabs";
import { useQueryParam } from "../../components/useQueryParam";
import { type Session, sessionName } from "../../model/session";
import { CapturedTurnContent, readTurnView, TURN_VIEWS } from "./CapturedTurnContent";
import { CapturedTurnFacts } from "./CapturedTurnFacts";
import { NoSession } from "./NoSession";
import css from "./Sessions.module.css";
import { capturedTurnQuery, capturedTurnsQuery, useSession } from "./session-requests";
import { TurnActions } from "./TurnActions";
import { TurnSteps } from "./TurnSteps";

/** One captured turn: its text or its bytes, and what can be done with it. */
export default function CapturedTurnScreen({ params }: ScreenProps<"session" | "seq">) {
	const found = useSession(params.session);
	if (found.kind !== "found") {
		const crumbs = [{ label: "Sessions", href: paths.sessions() }];
		return (
			<Page title={`${params.session}:${params.seq}`} crumbs={crumbs}>
				<NoSession name={params.session} found={found} />
			</Page>
		);
	}
	return <CapturedTurn session={found.session} others={found.others} seq={params.seq} />;
}

interface CapturedTurnProps {
	readonly session: Session;
	readonly others: readonly Session[];
	readonly seq: string;
}

function CapturedTurn({ session, others, seq }: CapturedTurnProps) {
	const [viewParam, setView] = useQueryParam("view");
	const view = readTurnView(viewParam);
	const turn = useQuery(capturedTurnQuery(session.session, seq, view !== "text"));
	const steps = useTurnSteps(session.session, seq);
	useKeys("Captured turn", [
		{ key: "j", does: "the captured turn before it", run: () => step(session.session, steps.older) },
		{ key: "k", does: "the captured turn after it", run: () => step(session.session, steps.newer) },
	]);
	const isMissing = isNotFound(turn.error);
	const name = sessionName(session);
	return (
		<Page
			title={`${name}:${seq}`}
			crumbs={[
				{ label: "Sessions", href: paths.sessions() },
				{ label: name, href: paths.session(session.session) },
			]}
			aside={<CopyButton text={`${session.session}:${seq}`} label="Copy the ref" />}
			actions={isMissing ? undefined : <TurnActions session={session} others={others} seq={seq} />}
			bar={
				<>
					<Segments label="Form" value={view} options={TURN_VIEWS} onChange={(next) => setView(next)} />
					<TurnSteps session={session.session} {...steps} />
				</>
			}
		>
			{turn.isPending && <Skeleton lines={8} />}
			{isMissing && (
				<EmptyState title="Not found">
					{`There is no captured turn ${seq} of this session. It may have left memory: the oldest ones go first.`}
				</EmptyState>
			)}
			{turn.error !== null && !isMissing && <ErrorNote error={turn.error} onRetry={() => void turn.refetch()} />}
			{turn.data !== undefined && (
				<>
					<CapturedTurnFacts turn={turn.data} />
					<div className={css.part}>
						<CapturedTurnContent turn={turn.data} view={view} />
					</div>
				</>
			)}
		</Page>
	);
}

interface Steps {
	readonly older: string | null;
	readonly newer: string | null;
}

/** The neighbours in the ring, which is newest first. */
function useTurnSteps(session: string, seq: string): Steps {
	const { data } = useQuery(capturedTurnsQuery(session, true));
	return useMemo(() => {
		const at = data?.findIndex((turn) => turn.seq === seq) ?? -1;
		if (data === undefined || at < 0) return { older: null, newer: null };
		return { older: data[at + 1]?.seq ?? null, newer: data[at - 1]?.seq ?? null };
	}, [data, seq]);
}

function step(session: string, seq: string | null): boolean {
	if (seq !== null) navigate(paths.capturedTurn(session, seq));
	return seq !== null;
}

import { useState } from "react";
import { paths } from "../../app/paths";
import { Button } from "../../components/Button";
import { CopyButton } from "../../components/CopyButton";
import { Page } from "../../components/Page";
import type { ScreenProps } from "../../components/screen";
import { LinkTabs } from "../../components/Tabs";
import { useQueryParam } from "../../components/useQueryParam";
import { type Session, sessionName, signalWords } from "../../model/session";
import { safeText } from "../../model/text-safety";
import { CapturedTurns } from "./CapturedTurns";
import { NoSession } from "./NoSession";
import { PasteDialog } from "./PasteDialog";
import { SessionState } from "./SessionState";
import css from "./Sessions.module.css";
import { SessionTerminal } from "./SessionTerminal";
import { useSession } from "./session-requests";
import { TurnActions } from "./TurnActions";

const CRUMBS = [{ label: "Sessions", href: paths.sessions() }];

/** A wrapped terminal: the ring of its captured turns, and the terminal itself where it is shared. */
export default function SessionScreen({ params }: ScreenProps<"session">) {
	const found = useSession(params.session);
	const [view] = useQueryParam("view");
	if (found.kind !== "found") {
		return (
			<Page title={params.session} crumbs={CRUMBS}>
				<NoSession name={params.session} found={found} />
			</Page>
		);
	}
	const { session, others } = found;
	const isTerminal = view === "terminal";
	const here = paths.session(params.session);
	const tabs = [
		{ id: "turns", label: "Captured turns", href: here, count: session.turns },
		{ id: "terminal", label: "Terminal", href: `${here}?view=terminal` },
	];
	return (
		<Page
			title={sessionName(session)}
			crumbs={CRUMBS}
			isFull={isTerminal}
			aside={<SessionState session={session} />}
			actions={<SessionActions session={session} others={others} />}
			bar={<LinkTabs label="Parts of the session" tabs={tabs} current={isTerminal ? "terminal" : "turns"} />}
		>
			{isTerminal ? (
				<SessionTerminal session={session} />
			) : (
				<>
					<SessionFacts session={session} />
					<CapturedTurns session={session} />
				</>
			)}
		</Page>
	);
}

function SessionActions({ session, others }: { readonly session: Session; readonly others: readonly Session[] }) {
	const [isPasting, setPasting] = useState(false);
	return (
		<>
			<TurnActions
				session={session}
				others={others}
				seq={null}
				blocked={session.has_turn ? null : "It has no captured turn yet"}
			/>
			<Button
				blocked={session.connected ? null : "The session has ended: its program takes no text"}
				onClick={() => setPasting(true)}
			>
				Paste the buffer here…
			</Button>
			{isPasting && <PasteDialog session={session} onClose={() => setPasting(false)} />}
		</>
	);
}

function SessionFacts({ session }: { readonly session: Session }) {
	const facts = [
		`preset ${safeText(session.preset ?? "none")}`,
		session.signal === undefined ? null : `state from ${signalWords(session.signal)}`,
		session.child_pid === undefined ? null : `process ${session.child_pid}`,
		session.shared ? "terminal shared" : "terminal private",
		"captured turns stay in memory until you keep them",
	];
	return (
		<p className={css.row}>
			<span className={css.soft}>{facts.filter((fact) => fact !== null).join(" · ")}</span>
			<CopyButton text={`session:${session.session}`} label="Copy the ref" />
		</p>
	);
}

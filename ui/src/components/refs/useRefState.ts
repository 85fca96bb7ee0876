/** The state of a run or a wrapped session, from the lists that the whole window shares. Other kinds have none of their own. */

import { useQuery } from "@tanstack/react-query";
import { runsQuery, sessionsQuery } from "../../api/queries";
import type { Ref } from "../../model/refs";
import { runStateWords } from "../../model/run-words";
import { sessionWords } from "../../model/session";
import type { StateTone } from "../StateWord";

export interface RefState {
	readonly tone: StateTone;
	readonly word: string;
}

export function useRefState(ref: Ref | null): RefState | null {
	const { data: runs } = useQuery({ ...runsQuery(), enabled: ref?.kind === "run" });
	const { data: sessions } = useQuery({ ...sessionsQuery(), enabled: ref?.kind === "session" });
	if (ref?.kind === "run") {
		const run = runs?.find(({ id }) => id === ref.id);
		if (run === undefined) return null;
		if (run.status === "running" && run.openApprovals > 0) return { tone: "waiting", word: "waits for you" };
		return runStateWords(run, { running: run.runningCount, agents: run.nodeCount });
	}
	if (ref?.kind === "session") {
		const session = sessions?.find((each) => each.session === ref.id);
		return session === undefined ? null : sessionWords(session);
	}
	return null;
}

/** What a person calls a run, a session or an agent; null where only its id is known. */

import { useQuery } from "@tanstack/react-query";
import { agentNamesQuery, runsQuery, sessionsQuery } from "../../api/queries";
import type { Ref } from "../../model/refs";
import { sessionName } from "../../model/session";

/** A name that is given is taken, and costs nothing. */
export function useRefName(ref: Ref | null, given: string | undefined): string | null {
	const wanted = given === undefined ? ref?.kind : undefined;
	const { data: runs } = useQuery({ ...runsQuery(), enabled: wanted === "run" });
	const { data: sessions } = useQuery({ ...sessionsQuery(), enabled: wanted === "session" });
	const { data: agents } = useQuery({ ...agentNamesQuery(), enabled: wanted === "node" });
	if (given !== undefined || ref === null) return given ?? null;
	switch (ref.kind) {
		case "run":
			return runs?.find(({ id }) => id === ref.id)?.title ?? null;
		case "node":
			return agents?.[ref.id]?.name ?? null;
		case "session": {
			const session = sessions?.find((each) => each.session === ref.id);
			return session === undefined ? null : sessionName(session);
		}
		default:
			return null;
	}
}

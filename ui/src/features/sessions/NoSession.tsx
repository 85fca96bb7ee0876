/** What a screen of a session shows where there is no one session to show. */

import type { ReactNode } from "react";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Skeleton } from "../../components/Skeleton";
import { safeText } from "../../model/text-safety";
import { SessionsClosed } from "./SessionsClosed";
import { SessionsTable } from "./SessionsTable";
import type { FoundSession } from "./session-requests";

export type NoSessionFound = Exclude<FoundSession, { readonly kind: "found" }>;

export function NoSession({ name, found }: { readonly name: string; readonly found: NoSessionFound }): ReactNode {
	switch (found.kind) {
		case "pending":
			return <Skeleton lines={8} />;
		case "failed":
			return <ErrorNote error={found.error} onRetry={found.retry} />;
		case "closed":
			return <SessionsClosed reason={found.reason} />;
		case "missing":
			return (
				<EmptyState title="Not found">
					{`No session is called ${safeText(name)}. A session that has ended is forgotten with its last captured turn; what was kept is in History.`}
				</EmptyState>
			);
		case "many":
			return (
				<>
					<p>{`Several sessions are called ${safeText(name)}.`}</p>
					<SessionsTable sessions={found.sessions} />
				</>
			);
	}
}

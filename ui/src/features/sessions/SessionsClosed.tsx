/** A server that shows no sessions: why, and what to do. */

import { EmptyState } from "../../components/EmptyState";
import { closedWords } from "../../model/session";

export function SessionsClosed({ reason }: { readonly reason: unknown }) {
	const { what, todo } = closedWords(reason);
	return (
		<EmptyState title="Sessions are not shown here">
			<p>{what}</p>
			<p>{todo}</p>
		</EmptyState>
	);
}

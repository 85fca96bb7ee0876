/** What can be done with a captured turn. Each action is pending until the broker has done it. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { navigate } from "wouter/use-browser-location";
import { keys } from "../../api/keys";
import { paths } from "../../app/paths";
import { toast } from "../../components/toasts";
import { formatBytes } from "../../model/quantity";
import type { Schema } from "../../model/schema";
import { postToSession } from "./session-requests";

/** `seq` of null means the latest turn. */
export function useCapture(session: string, seq: string | null) {
	return useMutation({
		mutationFn: () => postToSession<Schema<"Captured">>(session, "capture", seq === null ? {} : { seq }),
		onSuccess: ({ turn_id, size }) => toast(`${shortTurn(turn_id)}, ${formatBytes(size)}, is in the relay buffer now`),
	});
}

export function useKeep(session: string, seq: string | null) {
	const client = useQueryClient();
	return useMutation({
		mutationFn: () => postToSession<Schema<"Kept">>(session, "keep", seq === null ? {} : { seq }),
		onSuccess: ({ captured, context_id, turn_id }) => {
			void client.invalidateQueries({ queryKey: keys.contexts() });
			const open = () => navigate(paths.historyTurn(context_id, turn_id));
			toast(`${shortTurn(captured)} is kept as turn ${turn_id} of history ${context_id}`, {
				label: "Open",
				run: open,
			});
		},
	});
}

/** Types what is in the relay buffer into the session's program. */
export function usePaste(session: string) {
	return useMutation({
		mutationFn: (body: Schema<"PasteCaptured">) => postToSession<Schema<"Delivered">>(session, "paste", body),
	});
}

export function useDeliver(session: string) {
	return useMutation({
		mutationFn: (body: Schema<"DeliverCaptured">) => postToSession<Schema<"Delivered">>(session, "deliver", body),
	});
}

/** `0afb12…:3` as `0afb12ab:3`. */
function shortTurn(id: string): string {
	const colon = id.lastIndexOf(":");
	return `${id.slice(0, Math.min(8, colon))}${id.slice(colon)}`;
}

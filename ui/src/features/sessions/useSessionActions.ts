/** What can be done with a captured turn. Each action is pending until the broker has done it. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { navigate } from "wouter/use-browser-location";
import { useFormKey } from "../../api/idempotency";
import { keys } from "../../api/keys";
import { paths } from "../../app/paths";
import { toast } from "../../components/toasts";
import { formatBytes } from "../../model/quantity";
import type { Schema } from "../../model/schema";
import { postToSession, type SessionVerb } from "./session-requests";

/** Nothing more to say than the turn. */
type NoFields = Record<string, never>;

/** `seq` of null means the latest turn. */
export function useCapture(session: string, seq: string | null) {
	const body = seq === null ? {} : { seq };
	return usePost<Schema<"Captured">, NoFields>(session, "capture", body, ({ turn_id, size }) => {
		toast(`${shortTurn(turn_id)}, ${formatBytes(size)}, is in the relay buffer now`);
	});
}

export function useKeep(session: string, seq: string | null) {
	const client = useQueryClient();
	const body = seq === null ? {} : { seq };
	return usePost<Schema<"Kept">, NoFields>(session, "keep", body, ({ captured, context_id, turn_id }) => {
		void client.invalidateQueries({ queryKey: keys.contexts() });
		const open = () => navigate(paths.historyTurn(context_id, turn_id));
		toast(`${shortTurn(captured)} is kept as turn ${turn_id} of history ${context_id}`, {
			label: "Open",
			run: open,
		});
	});
}

/** Types what is in the relay buffer into the session's program. */
export function usePaste(session: string) {
	return usePost<Schema<"Delivered">, Schema<"PasteCaptured">>(session, "paste", {});
}

export function useDeliver(session: string) {
	return usePost<Schema<"Delivered">, Schema<"DeliverCaptured">>(session, "deliver", {});
}

/** A request whose body is `common` and what the caller adds. */
function usePost<Done, Body extends object>(
	session: string,
	verb: SessionVerb,
	common: object,
	onDone?: (done: Done) => void,
) {
	const form = useFormKey();
	return useMutation({
		mutationFn: (body: Body) => postToSession<Done>(session, verb, { ...common, ...body }, form.key),
		onSuccess: (done) => {
			form.renew();
			onDone?.(done);
		},
		onError: form.renewIfRefused,
	});
}

/** `0afb12…:3` as `0afb12ab:3`. */
function shortTurn(id: string): string {
	const colon = id.lastIndexOf(":");
	return `${id.slice(0, Math.min(8, colon))}${id.slice(colon)}`;
}

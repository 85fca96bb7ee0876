/** Sends the answer to an approval. The first answer wins, so another tab or person may have been faster. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ApiError } from "../../api/errors";
import { answer, api } from "../../api/http";
import { idempotent, useFormKey } from "../../api/idempotency";
import { keys } from "../../api/keys";
import { announce } from "../../components/announce";
import { toast } from "../../components/toasts";
import { earlierAnswer } from "../../model/resolution";
import type { Schema } from "../../model/schema";

export interface Resolve {
	/** Answers these approvals, one after the other, and stops at the first refusal. */
	readonly send: (ids: readonly string[], body: Schema<"ResolveApproval">) => void;
	readonly isPending: boolean;
	readonly error: unknown;
}

/** What was answered before; null if the error says something else. */
function earlierAnswerIn(error: unknown): string | null {
	if (!(error instanceof ApiError) || error.status !== 409) return null;
	return earlierAnswer((error.details.resolution ?? {}) as Partial<Schema<"ResolutionView">>);
}

export function useResolve(onDone: () => void = () => undefined): Resolve {
	const form = useFormKey();
	const client = useQueryClient();
	const mutation = useMutation({
		mutationFn: async ({ ids, body }: { ids: readonly string[]; body: Schema<"ResolveApproval"> }) => {
			for (const id of ids) {
				// Each approval is a request of its own, so each needs a key of its own.
				const headers = idempotent(`${form.key}-${id}`);
				await answer(api.POST("/api/approvals/{id}/resolve", { params: { path: { id } }, body, headers }));
			}
		},
		onSuccess: (_, { ids }) => {
			announce(ids.length === 1 ? "Answered" : `${ids.length} answered`, "polite");
			onDone();
		},
		onError: (error) => {
			const earlier = earlierAnswerIn(error);
			// The item goes as soon as the list is read again, and its own error with it.
			if (earlier !== null) toast(earlier);
			form.renewIfRefused(error);
		},
		// Not awaited: an error must not wait for the list.
		onSettled: () => void client.invalidateQueries({ queryKey: keys.attention() }),
	});
	return {
		send: (ids, body) => mutation.mutate({ ids, body }),
		isPending: mutation.isPending,
		error: mutation.error,
	};
}

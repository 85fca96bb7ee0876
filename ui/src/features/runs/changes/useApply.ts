import { type UseMutationResult, useMutation } from "@tanstack/react-query";
import { answer, api } from "../../../api/http";
import { idempotent, useFormKey } from "../../../api/idempotency";
import { toast } from "../../../components/toasts";
import { formatNumberOf } from "../../../model/quantity";
import type { Schema } from "../../../model/schema";

export type Apply = UseMutationResult<Schema<"AppliedChanges">, Error, void>;

/** Brings the work of all worktrees into the run's directory. A request that got no answer is sent again as it was. */
export function useApply(run: string): Apply {
	const form = useFormKey();
	return useMutation({
		mutationFn: () =>
			answer(
				api.POST("/api/runs/{run_id}/apply", {
					params: { path: { run_id: run } },
					headers: idempotent(form.key),
				}),
			),
		onSuccess({ applied }) {
			form.renew();
			const files = formatNumberOf(applied.length, "file");
			toast(applied.length === 0 ? "There was nothing new to apply" : `Applied ${files}`);
		},
		onError: form.renewIfRefused,
	});
}

/** A request that answers an item. It has one idempotency key until it succeeds, so a second press does nothing twice. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useFormKey } from "../../api/idempotency";
import { keys } from "../../api/keys";
import { announce } from "../../components/announce";

export interface ItemAction {
	readonly send: () => void;
	readonly isPending: boolean;
	readonly error: unknown;
}

export function useItemAction(request: (key: string) => Promise<unknown>, onDone?: () => void): ItemAction {
	const form = useFormKey();
	const client = useQueryClient();
	const mutation = useMutation({
		mutationFn: () => request(form.key),
		onSuccess: () => {
			form.renew();
			announce("Done", "polite");
			onDone?.();
		},
		onError: form.renewIfRefused,
		onSettled: () => void client.invalidateQueries({ queryKey: keys.attention() }),
	});
	return { send: () => mutation.mutate(), isPending: mutation.isPending, error: mutation.error };
}

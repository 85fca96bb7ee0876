/** Writes into a ledger: the operator's words, or one entry of a person. */

import { type UseMutationResult, useMutation, useQueryClient } from "@tanstack/react-query";
import { apiErrorOf } from "../../api/errors";
import { api } from "../../api/http";
import { useFormKey } from "../../api/idempotency";
import { keys } from "../../api/keys";
import { type Eyes, viewerOf } from "../../model/ledger";
import { type Declared, operatorEnvelope, personBeat, type Refusal, readRefusal } from "../../model/ledger-write";

export interface Writing {
	readonly text: string;
	/** Null for everyone. Only a person chooses its readers; the operator's words are for everyone. */
	readonly readers?: readonly string[] | null;
	readonly declared?: Declared;
}

export type Written =
	| { readonly kind: "written"; readonly writerFailure: string | null }
	/** The proposal was turned down; nothing of it was written. */
	| { readonly kind: "refused"; readonly refusal: Refusal };

export function useWrite(world: string, eyes: Eyes): UseMutationResult<Written, Error, Writing> {
	const form = useFormKey();
	const client = useQueryClient();
	return useMutation({
		mutationFn: (writing: Writing) =>
			eyes.kind === "person" ? writeAs(world, viewerOf(eyes), form.key, writing) : speak(world, form.key, writing),
		onSuccess() {
			form.renew();
			void client.invalidateQueries({ queryKey: keys.world(world) });
		},
		onError: form.renewIfRefused,
	});
}

async function speak(world: string, requestId: string, { text, declared }: Writing): Promise<Written> {
	const { error, response } = await api.POST("/v1/worlds/{world}/invocations", {
		params: { path: { world } },
		body: operatorEnvelope(requestId, text, declared),
	});
	if (!response.ok) throw apiErrorOf(response.status, error);
	return { kind: "written", writerFailure: response.headers.get("Writer-Failed") };
}

async function writeAs(world: string, person: string, requestId: string, writing: Writing): Promise<Written> {
	const { error, response } = await api.POST("/v1/worlds/{world}/beats", {
		params: { path: { world }, query: { as: person } },
		body: personBeat(requestId, person, writing.text, writing.readers ?? null),
	});
	if (response.ok) return { kind: "written", writerFailure: null };
	if (response.status === 422 && error !== undefined && "bundle" in error)
		return { kind: "refused", refusal: readRefusal(error.bundle.rejection?.reason ?? "") };
	throw apiErrorOf(response.status, error);
}

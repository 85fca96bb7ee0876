/** A program as a user writes it: it compiles against the built package, and what must not compile does not. */

import { GatewayClient, contextId as textContextId } from "@turnkeep/client/http";
import {
	type Client,
	connect,
	contextId,
	type Delivery,
	isRetryable,
	type Turn,
	TypeRegistry,
	turnId,
} from "@turnkeep/client/node";
import { TurnkeepProvider, useContextInfo, useTurns, useTypeDescriptor } from "@turnkeep/client/react";

export async function binary(): Promise<readonly Turn[]> {
	const client: Client = await connect("127.0.0.1:9009", { token: "secret" });
	// @ts-expect-error a turn is no context
	await client.last(turnId(1));
	// @ts-expect-error a plain number is no id
	await client.last(1n);
	for await (const { position, turn } of client.subscribe({ after: 0n })) report(position, turn.id);
	return client.last(contextId(1), { limit: 3, details: true });
}

function report(position: Delivery["position"], id: Turn["id"]): bigint {
	return position + id;
}

export async function gateway(): Promise<string | null> {
	const client = new GatewayClient({ baseUrl: "http://127.0.0.1:9010" });
	const id = textContextId("1");
	// @ts-expect-error there is no such view
	await client.turns(id, { view: "other" });
	// @ts-expect-error the binary protocol's id is a number
	await client.turns(contextId(1));
	await client.append(id, { type_id: "a", type_version: 1, data: { x: 1 }, expected_head_turn_id: "0" });
	const { next_before_turn_id: before } = await client.turns(id, { view: "raw", enum_render: "label" });
	if (before !== null) await client.turns(id, { before_turn_id: before });
	for await (const event of client.events()) {
		if (event.kind === "turn.appended") return event.data.turn_id;
	}
	return before;
}

export const rest = [isRetryable, TypeRegistry, TurnkeepProvider, useContextInfo, useTurns, useTypeDescriptor];

/** The client that hooks use, and the event streams that they share. */

import { createContext, createElement, type ReactNode, useContext, useMemo } from "react";
import type { GatewayClient } from "../http/client.js";
import { EventHub } from "./event-hub.js";

/** What hooks find above them. */
export interface Turnkeep {
	readonly client: GatewayClient;
	readonly hub: EventHub;
}

const TurnkeepContext = createContext<Turnkeep | null>(null);

/** Gives the hooks below it a client. Keep the client itself stable: a new one makes every hook start again. */
export function TurnkeepProvider({ client, children }: { client: GatewayClient; children?: ReactNode }) {
	const value = useMemo(() => ({ client, hub: new EventHub(client) }), [client]);
	return createElement(TurnkeepContext.Provider, { value }, children);
}

/** The provider's client and hub; throws outside of a provider. */
export function useTurnkeep(): Turnkeep {
	const value = useContext(TurnkeepContext);
	if (value === null) throw new Error("the hooks of @turnkeep/client/react need a TurnkeepProvider above them");
	return value;
}

/**
 * Whether this window can talk to its server, as one honest state.
 *
 * The notice stream (`notices.ts`) is the only writer, except that any answer 401 signs out. "reconnecting" says nothing
 * about agents: they go on while a browser is away.
 */

import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";

export type Connection =
	| { readonly state: "connecting" }
	| { readonly state: "connected" }
	/** The connection was lost at `since`; what is shown is as old as that. */
	| { readonly state: "reconnecting"; readonly since: number }
	/** Nothing has answered at the server's address since `since`. */
	| { readonly state: "stopped"; readonly since: number }
	| { readonly state: "signed-out" };

interface ConnectionState {
	readonly connection: Connection;
	/** The version of the server that this page began with. */
	readonly firstVersion: string | null;
	/** The version of the server now. Another one than the first means that the page is outdated. */
	readonly version: string | null;
	/** Whether a part of this page could not be loaded, because the server has newer files. */
	readonly isPartMissing: boolean;
}

export const connectionStore = createStore<ConnectionState>(() => ({
	connection: { state: "connecting" },
	firstVersion: null,
	version: null,
	isPartMissing: false,
}));

export function setConnection(connection: Connection): void {
	connectionStore.setState({ connection });
}

/** Notes the version of the server after each connect. */
export function noteVersion(version: string): void {
	connectionStore.setState((state) => ({ version, firstVersion: state.firstVersion ?? version }));
}

export function notePartMissing(): void {
	connectionStore.setState({ isPartMissing: true });
}

/** Whether the page must be reloaded because the server was upgraded. */
export function isOutdated(state: ConnectionState): boolean {
	return state.isPartMissing || (state.firstVersion !== null && state.firstVersion !== state.version);
}

/** Why nothing can be done right now; null if it can. Shown as the reason of every disabled action. */
export function actionBlock(connection: Connection): string | null {
	switch (connection.state) {
		case "connected":
			return null;
		case "connecting":
			return "Not connected yet";
		case "reconnecting":
			return "Reconnecting: the outcome would be unknown";
		case "stopped":
			return "The server does not answer";
		case "signed-out":
			return "Signed out";
	}
}

export function useConnection(): Connection {
	return useStore(connectionStore, (state) => state.connection);
}

/** Why actions are disabled; null if they are not. */
export function useActionBlock(): string | null {
	return actionBlock(useConnection());
}

export function useIsOutdated(): boolean {
	return useStore(connectionStore, isOutdated);
}

/** Makes a connection: TCP, TLS when configured, HELLO. All of it within one time-out; one try. */

import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { ConnectError, LostError, ProtocolError, TurnkeepError } from "../core/errors.js";
import { type Frame, MsgType } from "../wire/frame.js";
import { hello } from "../wire/requests.js";
import { type Session, session } from "../wire/responses.js";
import { readAnswer } from "./answer.js";
import { Connection } from "./connection.js";
import type { ResolvedOptions } from "./options.js";

/** The protocol's version that this client speaks. */
const VERSION = 1;
/** The server's log needs no longer name than this. */
const TAG_CHARS_MAX = 64;

/** Where a server listens. */
export interface Address {
	readonly host: string;
	readonly port: number;
}

/** Takes an address apart: `127.0.0.1:9009`, `localhost:9009`, `[::1]:9009`. */
export function parseAddress(text: string): Address {
	const parts = /^(?:\[([^\]]+)\]|([^:]+)):([0-9]{1,5})$/.exec(text);
	const host = parts?.[1] ?? parts?.[2];
	const port = Number(parts?.[3]);
	if (host === undefined || port > 65_535) throw new TypeError(`not an address: ${text}`);
	return { host, port };
}

/** Connects and introduces the client, until the signal is aborted. Rejects with a {@link TurnkeepError}. */
export async function dial(address: Address, options: ResolvedOptions, signal: AbortSignal): Promise<Connection> {
	const connection = new Connection((onread) => openSocket(address, options, onread), options);
	const late = new LostError("silent", "no connection in time");
	const timer = setTimeout(() => connection.close(late), options.connectTimeoutMs);
	const stop = () => connection.close();
	signal.addEventListener("abort", stop, { once: true });
	try {
		await greet(connection, options);
		return connection;
	} catch (error) {
		connection.close();
		throw explain(`${address.host}:${address.port}`, error as Error);
	} finally {
		clearTimeout(timer);
		signal.removeEventListener("abort", stop);
	}
}

function openSocket({ host, port }: Address, { tls }: ResolvedOptions, onread: OnReadOpts): Socket {
	if (tls === undefined) return connectTcp({ host, port, onread });
	const trust = tls.ca === undefined ? {} : { ca: tls.ca };
	// An IP address is checked against the certificate, but is no name to ask for.
	const name = tls.serverName ?? (isIP(host) === 0 ? host : undefined);
	// TLS reads as TCP does, which the types do not say.
	const reading: object = { onread };
	return connectTls({ host, port, ...(name === undefined ? {} : { servername: name }), ...trust, ...reading });
}

function greet(connection: Connection, { token, tag }: ResolvedOptions): Promise<void> {
	const meta = JSON.stringify(token === undefined ? {} : { token });
	const request = { version: VERSION, tag: tag.slice(0, TAG_CHARS_MAX), meta };
	return new Promise((resolve, reject) => {
		connection.send(hello, request, {
			isReply: true,
			onFrame(frame: Frame) {
				try {
					resolve(checkVersion(readAnswer(frame, MsgType.Hello, session)));
				} catch (error) {
					reject(error);
				}
			},
			onLost: (error: LostError | ProtocolError) => reject(error.cause instanceof TurnkeepError ? error.cause : error),
		});
	});
}

function checkVersion({ version }: Session): void {
	if (version !== VERSION) throw new ProtocolError("bad_value", `the server speaks version ${version}, not ${VERSION}`);
}

/** Errors of the server and of the protocol stay as they are. Any other error becomes a failure to connect. */
function explain(name: string, cause: Error): Error {
	if (cause instanceof ProtocolError || (cause instanceof LostError && cause.reason === "closed")) return cause;
	if (cause instanceof TurnkeepError && "status" in cause) return cause;
	return new ConnectError(`cannot connect to ${name}: ${cause.message}`, { cause });
}

/** Makes a connection: TCP, TLS when configured, HELLO. All of it within one time-out; one try. */

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { ConnectError, LostError, ProtocolError, TurnkeepError } from "../core/errors.js";
import { type Frame, MsgType } from "../wire/frame.js";
import { hello } from "../wire/requests.js";
import { session } from "../wire/responses.js";
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
export function dial(address: Address, options: ResolvedOptions, signal: AbortSignal): Promise<Connection> {
	const name = `${address.host}:${address.port}`;
	return new Promise((resolve, reject) => {
		const socket = openSocket(address, options);
		const timer = setTimeout(() => fail(new Error("no connection in time")), options.connectTimeoutMs);
		const stop = () => fail(signal.reason as Error);
		signal.addEventListener("abort", stop, { once: true });
		const fail = (cause: Error) => {
			clearTimeout(timer);
			signal.removeEventListener("abort", stop);
			socket.removeListener("error", fail);
			socket.on("error", () => undefined).destroy();
			reject(explain(name, cause));
		};
		socket.once("error", fail);
		socket.once(options.tls ? "secureConnect" : "connect", () => {
			socket.removeListener("error", fail);
			const connection = new Connection(socket, options);
			greet(connection, options).then(
				() => {
					clearTimeout(timer);
					signal.removeEventListener("abort", stop);
					resolve(connection);
				},
				(error: Error) => {
					connection.close();
					fail(error);
				},
			);
		});
	});
}

function openSocket({ host, port }: Address, { tls }: ResolvedOptions): Socket {
	if (tls === undefined) return connectTcp({ host, port });
	return connectTls({
		host,
		port,
		servername: tls.serverName ?? host,
		...(tls.ca === undefined ? {} : { ca: tls.ca }),
	});
}

function greet(connection: Connection, { token, tag }: ResolvedOptions): Promise<unknown> {
	const meta = JSON.stringify(token === undefined ? {} : { token });
	const request = { version: VERSION, tag: tag.slice(0, TAG_CHARS_MAX), meta };
	return new Promise((resolve, reject) => {
		connection.send(hello, request, {
			isReply: true,
			onFrame(frame: Frame) {
				try {
					resolve(readAnswer(frame, MsgType.Hello, session));
				} catch (error) {
					reject(error);
				}
			},
			onLost: (error: LostError) => reject(error.cause instanceof TurnkeepError ? error.cause : error),
		});
	});
}

/** A server's refusal and a server that is none are told as they are; the rest is a failure to connect. */
function explain(name: string, cause: Error): Error {
	if (cause instanceof ProtocolError || (cause instanceof LostError && cause.reason === "closed")) return cause;
	if (cause instanceof TurnkeepError && "status" in cause) return cause;
	return new ConnectError(`cannot connect to ${name}: ${cause.message}`, { cause });
}

/** A server of the binary protocol that does what a test tells it, on a free port of the loopback. */

import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { ByteWriter } from "../src/wire/bytes.js";
import { type Frame, FrameGatherer, MsgType, writeFrame } from "../src/wire/frame.js";
import { failure, type ResponseCodec, session } from "../src/wire/responses.js";

const FRAME_BYTES_MAX = 64 << 20;

/** One client's connection. */
export class FakePeer {
	constructor(
		readonly socket: Socket,
		/** How many connections were made before it. */
		readonly number: number,
	) {}

	/** Answers a request. */
	answer<T>(request: Pick<Frame, "msgType" | "reqId">, codec: ResponseCodec<T>, value: T, flags = 0): void {
		this.socket.write(frameOf({ msgType: request.msgType, flags, reqId: request.reqId }, codec, value));
	}

	/** Refuses a request. */
	refuse(request: Pick<Frame, "reqId">, status: number, code: string, details: object = {}): void {
		const detail = JSON.stringify({ code, message: `${code} from the fake`, details });
		this.socket.write(frameOf({ msgType: MsgType.Error, flags: 0, reqId: request.reqId }, failure, { status, detail }));
	}
}

/** The bytes of a frame. */
export function frameOf<T>(
	header: { msgType: number; flags: number; reqId: bigint },
	codec: ResponseCodec<T>,
	value: T,
): Buffer {
	const out = new ByteWriter(64);
	writeFrame(out, header, (payload) => codec.write(payload, value));
	return Buffer.from(out.written());
}

/** Gives a gatherer a piece as a socket would, as much at a time as it has room for. */
export function push(gatherer: FrameGatherer, piece: Buffer, deliver: (frame: Frame) => void): void {
	for (let at = 0; at < piece.length; ) {
		const copied = piece.copy(gatherer.room(), 0, at);
		gatherer.filled(copied, deliver);
		at += copied;
	}
}

/** Greets every client and hands each further request to the test. */
export class FakeServer {
	readonly #server: Server;
	readonly #sockets = new Set<Socket>();
	#connections = 0;

	private constructor(onRequest: (peer: FakePeer, frame: Frame) => void, greets: boolean) {
		this.#server = createServer((socket) => {
			const peer = new FakePeer(socket, this.#connections);
			this.#connections += 1;
			this.#sockets.add(socket);
			socket.on("error", () => undefined);
			socket.on("close", () => this.#sockets.delete(socket));
			const gatherer = new FrameGatherer(FRAME_BYTES_MAX);
			socket.on("data", (piece: Buffer) =>
				push(gatherer, piece, (frame) => {
					frame.payload.own();
					const isGreeting = frame.msgType === MsgType.Hello && greets;
					if (isGreeting) peer.answer(frame, session, { sessionId: 1n, version: 1 });
					else onRequest(peer, frame);
				}),
			);
		});
	}

	static async start(onRequest: (peer: FakePeer, frame: Frame) => void, { greets = true } = {}): Promise<FakeServer> {
		const fake = new FakeServer(onRequest, greets);
		fake.#server.listen(0, "127.0.0.1");
		await once(fake.#server, "listening");
		return fake;
	}

	get address(): string {
		return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
	}

	/** How many connections were made. */
	get connections(): number {
		return this.#connections;
	}

	/** Waits until every client has gone by itself. */
	async everyoneLeft(): Promise<void> {
		await Promise.all([...this.#sockets].map((socket) => once(socket, "close")));
	}

	async stop(): Promise<void> {
		for (const socket of this.#sockets) socket.destroy();
		this.#server.close();
		await once(this.#server, "close");
	}
}

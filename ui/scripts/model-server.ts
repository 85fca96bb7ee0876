/**
 * A model that plays a script, for a real agent program: as much of Anthropic's messages as Claude Code needs.
 *
 * The first answer to a prompt is a shell command, the one after its result is a sentence. It keeps no state, so a
 * repeated request gets the same answer.
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ModelScript {
	readonly command: string;
	readonly says: string;
}

export interface ModelServer {
	readonly url: string;
	stop(): void;
}

interface Request {
	readonly stream?: boolean;
	readonly tools?: readonly unknown[];
	readonly messages: readonly {
		readonly role: string;
		readonly content: string | readonly { readonly type: string }[];
	}[];
}

const USAGE = { input_tokens: 100, output_tokens: 50 };

export async function startModel(script: ModelScript): Promise<ModelServer> {
	let answers = 0;
	const server = createServer((request, response) => {
		answers += 1;
		answerRequest(script, answers, request, response).catch(() => response.destroy());
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as AddressInfo;
	return {
		url: `http://127.0.0.1:${port}`,
		stop() {
			server.closeAllConnections();
			server.close();
		},
	};
}

async function answerRequest(
	script: ModelScript,
	number: number,
	request: IncomingMessage,
	response: ServerResponse,
): Promise<void> {
	if (!new URL(request.url ?? "/", "http://model").pathname.endsWith("/messages")) {
		response.writeHead(404).end();
		return;
	}
	let text = "";
	for await (const piece of request) text += String(piece);
	const asked = JSON.parse(text) as Request;
	const message = { id: `msg_${number}`, type: "message", role: "assistant", model: "scripted", usage: USAGE };
	if (asked.stream !== true) {
		// Programs also ask for titles and the like.
		const content = [{ type: "text", text: "A title" }];
		response.writeHead(200, { "content-type": "application/json" });
		response.end(JSON.stringify({ ...message, content, stop_reason: "end_turn", stop_sequence: null }));
		return;
	}
	response.writeHead(200, { "content-type": "text/event-stream" });
	for (const event of answerEvents(script, number, asked, message)) {
		response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
	}
	response.end();
}

function answerEvents(script: ModelScript, number: number, asked: Request, message: object) {
	const runs = (asked.tools ?? []).length > 0 && !hasResult(asked);
	const input = JSON.stringify({ command: script.command, description: "Runs it" });
	const block = runs
		? { type: "tool_use", id: `toolu_${number}`, name: "Bash", input: {} }
		: { type: "text", text: "" };
	const delta = runs ? { type: "input_json_delta", partial_json: input } : { type: "text_delta", text: script.says };
	const stop = { stop_reason: runs ? "tool_use" : "end_turn", stop_sequence: null };
	return [
		{ type: "message_start", message: { ...message, content: [], stop_reason: null, stop_sequence: null } },
		{ type: "content_block_start", index: 0, content_block: block },
		{ type: "content_block_delta", index: 0, delta },
		{ type: "content_block_stop", index: 0 },
		{ type: "message_delta", delta: stop, usage: USAGE },
		{ type: "message_stop" },
	];
}

/** Whether the conversation has the result of a command. */
function hasResult({ messages }: Request): boolean {
	return messages.some(
		({ content }) => typeof content !== "string" && content.some(({ type }) => type === "tool_result"),
	);
}

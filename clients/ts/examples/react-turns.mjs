// The hooks, without a browser: what a page shows is rendered to text once the turns are there.
import { GatewayClient } from "@turnkeep/client/http";
import { TurnkeepProvider, useTurns } from "@turnkeep/client/react";
import { createElement } from "react";
import { renderToString } from "react-dom/server";

const client = new GatewayClient({
	baseUrl: process.env.TURNKEEP_HTTP ?? "http://127.0.0.1:9010",
	token: process.env.TURNKEEP_TOKEN,
});
const { context_id } = await client.createContext();

function Transcript({ contextId }) {
	const { status, turns, hasOlder, loadOlder } = useTurns(contextId, { pageTurns: 20 });
	const older = hasOlder ? createElement("button", { type: "button", onClick: loadOlder }, "Older") : null;
	const lines = turns.map((turn) => createElement("li", { key: turn.turn_id }, JSON.stringify(turn.data)));
	return createElement("section", { "aria-busy": status === "loading" }, older, createElement("ol", null, lines));
}

const page = createElement(TurnkeepProvider, { client }, createElement(Transcript, { contextId: context_id }));
console.log(renderToString(page));

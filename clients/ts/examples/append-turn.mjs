// APPEND_TURN: one turn, durable when the promise is fulfilled. With its key it can be sent again and happens once.
import { connect, encodeTagged } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId } = await client.createContext();
const message = {
	contextId,
	type: { id: "example.Message", version: 1 },
	payload: encodeTagged({ 1: "user", 2: "hello", 3: 2n ** 63n }),
	key: "message-1",
	expectedHead: null, // the context must be empty
};
const first = await client.append(message);
const again = await client.append(message);
console.log(`turn ${first.turnId}, and again turn ${again.turnId}`);
client.close();

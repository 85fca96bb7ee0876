// APPEND_BATCH: several turns, all or none, each the child of the one before.
import { connect, encodeTagged } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId } = await client.createContext();
const type = { id: "example.Message", version: 1 };
const turns = ["question", "answer"].map((text) => ({ type, payload: encodeTagged({ 1: text }) }));
const ack = await client.appendBatch({ contextId, turns, key: "exchange-1" });
for (const { turnId, depth } of ack.turns) console.log(`turn ${turnId} at depth ${depth}`);
client.close();

// GET_HEAD: where a context stands.
import { connect } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId } = await client.createContext();
const { headTurnId, headDepth } = await client.head(contextId);
console.log(`the head of context ${contextId} is ${headTurnId} at depth ${headDepth}`);
client.close();

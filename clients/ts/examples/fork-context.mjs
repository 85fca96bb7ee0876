// CTX_FORK: a new context whose head is a turn of another one. Nothing is copied.
import { connect, encodeTagged } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId } = await client.createContext();
const type = { id: "example.Message", version: 1 };
const { turnId } = await client.append({ contextId, type, payload: encodeTagged({ 1: "before the fork" }) });
const fork = await client.forkContext({ base: turnId });
await client.append({ contextId: fork.contextId, type, payload: encodeTagged({ 1: "only in the fork" }) });
console.log(`context ${contextId} has ${(await client.last(contextId)).length} turn`);
console.log(`context ${fork.contextId} has ${(await client.last(fork.contextId)).length} turns`);
client.close();

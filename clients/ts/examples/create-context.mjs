// CTX_CREATE: a new, empty context. The key makes the request safe to repeat: it gives the same context again.
import { connect } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const { contextId, headTurnId } = await client.createContext({ key: "examples/create-context" });
console.log(`context ${contextId} has the head ${headTurnId}`);
client.close();

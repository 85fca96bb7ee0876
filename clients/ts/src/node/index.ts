/** `@turnkeep/client/node`: the binary protocol, for servers. */

export * from "../core/index.js";
export type { IdempotencyKey } from "../wire/requests.js";
export type { BatchAck, BlobAck, ContextHead, Delivery, TurnAck } from "../wire/responses.js";
export { type Compression, MSGPACK, type Turn, type TurnContent, type TypeRef } from "../wire/turns.js";
export {
	type Append,
	type AppendOptions,
	type BatchAppend,
	type CallOptions,
	type Client,
	connect,
	type NewTurn,
	type PageOptions,
	type ReadOptions,
	type SubscribeOptions,
} from "./client.js";
export { type ContextId, contextId, type Position, type TurnId, turnId } from "./ids.js";
export type { ClientOptions, TlsOptions } from "./options.js";
export { payloadOf, verifyTurn } from "./payload-of.js";
export type { Subscription } from "./subscription.js";

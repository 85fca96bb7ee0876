/** `@turnkeep/client/http`: the typed gateway, for servers and browsers. */

export * from "../core/index.js";
export { type AppendResult, type ByteRange, type GatewayCallOptions, GatewayClient } from "./client.js";
export type { EventOptions } from "./events.js";
export { type ContextId, contextId, NONE, type Position, type TurnId, turnId } from "./ids.js";
export type {
	AppendTurn,
	BlobPut,
	Context,
	ContextListOptions,
	ContextPage,
	CreateContext,
	ForkContext,
	FsListing,
	FsNode,
	Health,
	Stats,
	StoreEvent,
	Turn,
	TurnAck,
	TurnPage,
	TurnPageOptions,
	TypeDescriptor,
	TypeList,
	ViewOptions,
	Why,
} from "./resources.js";
export type { GatewayOptions } from "./transport.js";

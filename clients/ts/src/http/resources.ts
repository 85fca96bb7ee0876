/**
 * The gateway's JSON, by its own names: the types are those of the server's OpenAPI document, with ids and hashes
 * branded and free-form objects opened. `openapi.ts` is generated; a test fails when it is not what the document says.
 */

import type { BlobHash } from "../core/blob-hash.js";
import type { FieldDescriptor } from "../core/bundle.js";
import type { ContextId, NONE, Position, TurnId } from "./ids.js";
import type { components, operations } from "./openapi.js";

type Schemas = components["schemas"];
type JsonObject = Readonly<Record<string, unknown>>;

/** What a property's name says about it that OpenAPI cannot. */
interface NamedTypes {
	context_id: ContextId;
	turn_id: TurnId;
	base_turn_id: TurnId;
	parent_turn_id: TurnId | typeof NONE;
	head_turn_id: TurnId | typeof NONE;
	expected_head_turn_id: TurnId | typeof NONE;
	before_turn_id: TurnId | typeof NONE;
	next_before_turn_id: TurnId | null;
	content_hash_b3: BlobHash;
	fs_root_hash: BlobHash;
	hash: BlobHash;
	data: JsonObject;
	unknown: JsonObject;
	fields: Readonly<Record<string, FieldDescriptor>>;
}

type Named<T> = T extends readonly (infer Element)[]
	? readonly Named<Element>[]
	: T extends object
		? { readonly [K in keyof T]: K extends keyof NamedTypes ? NamedTypes[K] : Named<T[K]> }
		: T;

/** A context. */
export type Context = Named<Schemas["Context"]>;
/** A page of contexts, newest created first. */
export type ContextPage = Named<Schemas["ContextPage"]>;
/** A request for a new context. */
export type CreateContext = Named<Schemas["CreateContext"]>;
/** A request for a new context that starts from a turn. */
export type ForkContext = Named<Schemas["ForkContext"]>;
/** A request to append a turn: either `data` or `payload_b64`. */
export type AppendTurn = Named<Schemas["AppendTurn"]>;
/** The ack of an append: the turn is durable. */
export type TurnAck = Named<Schemas["TurnAck"]>;
/** A turn, as the asked view shows it. */
export type Turn = Named<Schemas["Turn"]>;
/** A page of turns, oldest first. */
export type TurnPage = Named<Schemas["TurnPage"]>;
/** The ack of a put: the blob is durable. */
export type BlobPut = Named<Schemas["BlobPut"]>;
/** A directory of a turn's filesystem. */
export type FsListing = Named<Schemas["FsListing"]>;
/** What a path leads to, unless it is a file. */
export type FsNode = Named<Schemas["FsNode"]>;
/** Every known type. */
export type TypeList = Named<Schemas["TypeList"]>;
/** A type at one version. */
export type TypeDescriptor = Named<Schemas["TypeVersion"]>;
/** Counters of the store and of the server. */
export type Stats = Named<Schemas["Stats"]>;
/** Why something is there: its cause, the cause of that, up to a person. */
export type Why = Named<Schemas["Why"]>;
/** Whether the server can do its work. */
export type Health = Named<Schemas["Health"]>;

/** How turns are shown: every query option of a single turn. */
export type ViewOptions = Named<NonNullable<operations["turns_show"]["parameters"]["query"]>>;
/** How a page of turns is taken and shown: every query option of a page. */
export type TurnPageOptions = Named<NonNullable<operations["turns_page"]["parameters"]["query"]>>;
/** Which contexts are listed. `label` is `key` or `key=value`. */
export type ContextListOptions = Named<NonNullable<operations["contexts_list"]["parameters"]["query"]>>;

interface EventData {
	"turn.appended": Named<Schemas["TurnAppended"]>;
	"turn.lost": Named<Schemas["TurnLost"]>;
	"context.created": Named<Schemas["ContextCreated"]>;
	"context.lost": Named<Schemas["ContextLost"]>;
	"fs.attached": Named<Schemas["FsAttached"]>;
	"registry.put": Named<Schemas["RegistryPut"]>;
}

/** The kinds of events that this client knows; it skips others. */
export const EVENT_KINDS: readonly (keyof EventData)[] = [
	"turn.appended",
	"turn.lost",
	"context.created",
	"context.lost",
	"fs.attached",
	"registry.put",
];

/** Something that happened in the store. */
export type StoreEvent = {
	[Kind in keyof EventData]: {
		/** Its place in the feed; what to resume after. */
		readonly position: Position;
		readonly kind: Kind;
		readonly data: EventData[Kind];
	};
}[keyof EventData];

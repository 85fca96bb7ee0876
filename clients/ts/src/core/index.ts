/** What all entry points share: hashes, payloads, the registry's types, errors. */

export { DEFAULT_RETRY, type RetryPolicy } from "./backoff.js";
export { type BlobHash, blobHash, hashOf, verifyHash } from "./blob-hash.js";
export type { Bundle, EnumDescriptor, FieldDescriptor, VersionDescriptor } from "./bundle.js";
export {
	ConnectError,
	type ErrorCode,
	HashMismatchError,
	isRetryable,
	LostError,
	type LostReason,
	OutcomeUnknownError,
	PayloadError,
	type PayloadFault,
	ProtocolError,
	type ProtocolFault,
	ServerError,
	TooLargeError,
	TurnkeepError,
} from "./errors.js";
export { decodeTree, type TreeEntry, type TreeEntryKind } from "./fs-tree.js";
export { Extension, Float32, Float64, type MsgKey, type MsgValue, Raw, type Tag } from "./msgpack-value.js";
export { encodeTagged, TaggedMap } from "./tagged.js";
export { type TypedBlob, type TypedRecord, type TypedValue, TypeRegistry, UNKNOWN } from "./type-registry.js";

/** What all entry points share: hashes, payloads, the registry's types, errors. */

export { DEFAULT_RETRY, type RetryPolicy } from "./backoff.js";
export { type BlobHash, blobHash, hashOf, verifyHash } from "./blob-hash.js";
export {
	ConnectError,
	type ErrorCode,
	HashMismatchError,
	isRetryable,
	LostError,
	type LostReason,
	OutcomeUnknownError,
	PayloadError,
	ProtocolError,
	type ProtocolFault,
	ServerError,
	TooLargeError,
	TurnkeepError,
} from "./errors.js";

/**
 * Refs: the one text form of an object's name, shared by links, search, the API and the command line.
 *
 * `parseRef` accepts what people paste (`artifact:ID` for `artifact://ID`, `session:NAME`); `formatRef` writes the one
 * form that the server and `turnkeep show` accept. `parseRef(formatRef(ref))` is always `ref`.
 */

/** A thing that has a name. `line` is a line that a diff added; `agentTurn` and `turn` share the prefix `turn:`. */
export type Ref =
	| { readonly kind: "context"; readonly id: string }
	| { readonly kind: "turn"; readonly id: string }
	| { readonly kind: "agentTurn"; readonly id: string }
	| { readonly kind: "blob"; readonly hash: string }
	| { readonly kind: "session"; readonly id: string }
	| { readonly kind: "capturedTurn"; readonly session: string; readonly seq: string }
	| { readonly kind: "run"; readonly id: string }
	| { readonly kind: "node"; readonly id: string }
	| { readonly kind: "edge"; readonly id: string }
	| { readonly kind: "envelope"; readonly id: string }
	| { readonly kind: "message"; readonly id: string }
	| { readonly kind: "approval"; readonly id: string }
	| { readonly kind: "artifact"; readonly id: string }
	| { readonly kind: "line"; readonly artifact: string; readonly path: string; readonly line: number }
	| { readonly kind: "world"; readonly name: string }
	| { readonly kind: "entry"; readonly id: string }
	| { readonly kind: "person"; readonly world: string; readonly id: string }
	| { readonly kind: "type"; readonly id: string; readonly version: number | null };

export type RefKind = Ref["kind"];

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const NUMBER = /^[1-9][0-9]{0,19}$/;
const U64_MAX = 2n ** 64n - 1n;
const HASH_PREFIX = /^[0-9a-f]{4,64}$/;
const ENTRY = /^e_[0-9a-z]{26}$/;
/** Names of worlds and ids of persons follow one rule. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
/** Kinds whose id is a UUID and whose prefix is the kind's own name. */
const UUID_KINDS = ["run", "node", "edge", "envelope", "message", "approval"] as const;
/** The server refuses longer texts. */
const REF_CHARS_MAX = 8 << 10;

/** Reads a ref; null if the text is none. */
export function parseRef(text: string): Ref | null {
	const trimmed = text.trim();
	const colon = trimmed.indexOf(":");
	if (trimmed.length > REF_CHARS_MAX || colon < 0) return null;
	const prefix = trimmed.slice(0, colon).toLowerCase();
	const rest = trimmed.slice(colon + 1);
	const uuidKind = UUID_KINDS.find((kind) => kind === prefix);
	if (uuidKind !== undefined) return UUID.test(rest) ? { kind: uuidKind, id: rest } : null;
	switch (prefix) {
		case "ctx":
			return isNumber(rest) ? { kind: "context", id: rest } : null;
		case "turn":
			if (isNumber(rest)) return { kind: "turn", id: rest };
			return UUID.test(rest) ? { kind: "agentTurn", id: rest } : null;
		case "blob":
			return HASH_PREFIX.test(rest) ? { kind: "blob", hash: rest } : null;
		case "artifact":
		case "contextpack":
			return parseArtifact(rest.replace(/^\/\//, ""));
		case "entry":
			return ENTRY.test(rest) ? { kind: "entry", id: rest } : null;
		case "world":
			return NAME.test(rest) ? { kind: "world", name: rest } : null;
		case "person":
			return parsePerson(rest);
		case "type":
			return parseType(rest);
		case "session":
			return parseSession(rest);
		default:
			return parseCapturedTurn(trimmed);
	}
}

function isNumber(text: string): boolean {
	return NUMBER.test(text) && BigInt(text) <= U64_MAX;
}

function parseArtifact(rest: string): Ref | null {
	const hash = rest.indexOf("#");
	const id = hash < 0 ? rest : rest.slice(0, hash);
	if (!UUID.test(id)) return null;
	if (hash < 0) return { kind: "artifact", id };
	const place = rest.slice(hash + 1);
	// From the right: a path may have colons.
	const colon = place.lastIndexOf(":");
	const line = place.slice(colon + 1);
	if (colon <= 0 || !isNumber(line) || !Number.isSafeInteger(Number(line))) return null;
	return { kind: "line", artifact: id, path: place.slice(0, colon), line: Number(line) };
}

function parsePerson(rest: string): Ref | null {
	const [world = "", id = "", ...more] = rest.split("/");
	return more.length === 0 && NAME.test(world) && NAME.test(id) ? { kind: "person", world, id } : null;
}

function parseType(rest: string): Ref | null {
	const at = rest.lastIndexOf("@");
	const id = at < 0 ? rest : rest.slice(0, at);
	if (id === "" || /\s/.test(id)) return null;
	if (at < 0) return { kind: "type", id, version: null };
	const version = rest.slice(at + 1);
	return /^[0-9]{1,10}$/.test(version) ? { kind: "type", id, version: Number(version) } : null;
}

function parseSession(rest: string): Ref | null {
	const captured = parseCapturedTurn(rest);
	if (captured !== null) return captured;
	return rest === "" || /[\s:]/.test(rest) ? null : { kind: "session", id: rest };
}

/** `review:3`. The session is a name or the head of an id; the broker resolves both. */
function parseCapturedTurn(text: string): Ref | null {
	const colon = text.lastIndexOf(":");
	const session = text.slice(0, colon);
	const seq = text.slice(colon + 1);
	if (colon <= 0 || !isNumber(seq) || /[\s:/]/.test(session)) return null;
	return { kind: "capturedTurn", session, seq };
}

/** The one text form. */
export function formatRef(ref: Ref): string {
	switch (ref.kind) {
		case "context":
			return `ctx:${ref.id}`;
		case "turn":
		case "agentTurn":
			return `turn:${ref.id}`;
		case "blob":
			return `blob:${ref.hash}`;
		case "session":
			return `session:${ref.id}`;
		case "capturedTurn":
			return `${ref.session}:${ref.seq}`;
		case "run":
		case "node":
		case "edge":
		case "envelope":
		case "message":
		case "approval":
		case "entry":
			return `${ref.kind}:${ref.id}`;
		case "artifact":
			return `artifact://${ref.id}`;
		case "line":
			return `artifact://${ref.artifact}#${ref.path}:${ref.line}`;
		case "world":
			return `world:${ref.name}`;
		case "person":
			return `person:${ref.world}/${ref.id}`;
		case "type":
			return ref.version === null ? `type:${ref.id}` : `type:${ref.id}@${ref.version}`;
	}
}

/** What a kind is called on screen. */
export function refKindWord(kind: RefKind): string {
	return KIND_WORDS[kind];
}

const KIND_WORDS: Record<RefKind, string> = {
	context: "history",
	turn: "turn",
	agentTurn: "agent turn",
	blob: "blob",
	session: "session",
	capturedTurn: "captured turn",
	run: "run",
	node: "agent",
	edge: "edge",
	envelope: "handoff",
	message: "message",
	approval: "approval",
	artifact: "artifact",
	line: "line",
	world: "ledger",
	entry: "entry",
	person: "person",
	type: "type",
};

/** A short name where no better one is known: ids are cut, names and numbers are not. */
export function shortRefName(ref: Ref): string {
	switch (ref.kind) {
		case "context":
		case "turn":
			return ref.id;
		case "blob":
			return ref.hash.slice(0, 8);
		case "session":
			return shortSession(ref.id);
		case "capturedTurn":
			return `${shortSession(ref.session)}:${ref.seq}`;
		case "line":
			return `${ref.path}:${ref.line}`;
		case "world":
			return ref.name;
		case "person":
			return ref.id;
		case "type":
			return ref.version === null ? ref.id : `${ref.id}@${ref.version}`;
		case "entry":
			return ref.id.slice(0, 10);
		case "agentTurn":
		case "run":
		case "node":
		case "edge":
		case "envelope":
		case "message":
		case "approval":
		case "artifact":
			return ref.id.slice(0, 8);
	}
}

function shortSession(id: string): string {
	return /^[0-9a-f]{32}$/.test(id) ? id.slice(0, 8) : id;
}

/** Whether the server can explain the causes of such a thing (`GET /v1/refs/{ref}/why`). */
export function hasChain(ref: Ref): boolean {
	switch (ref.kind) {
		case "line":
		case "artifact":
		case "agentTurn":
		case "envelope":
		case "message":
		case "run":
		case "entry":
		case "turn":
		case "context":
			return true;
		case "blob":
		case "session":
		case "capturedTurn":
		case "node":
		case "edge":
		case "approval":
		case "world":
		case "person":
		case "type":
			return false;
	}
}

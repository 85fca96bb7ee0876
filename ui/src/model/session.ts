/** Wrapped sessions and captured turns in words. */

import type { Schema } from "./schema";

export type Session = Schema<"Session">;
export type CapturedTurnInfo = Schema<"CapturedTurnInfo">;

export interface SessionWords {
	readonly tone: "running" | "waiting" | "neutral";
	readonly word: string;
	readonly reason: string;
	/** Since when; null if that is not known. */
	readonly since: string | null;
}

/** The state of a session, with its reason. */
export function sessionWords(session: Pick<Session, "connected" | "state" | "since" | "unanswered">): SessionWords {
	const since = session.since ?? null;
	if (!session.connected) return { tone: "neutral", word: "ended", reason: "its turns are still kept", since };
	switch (session.state) {
		case "working":
			return { tone: "running", word: "working", reason: "on what was entered last", since };
		case "blocked":
			return { tone: "waiting", word: "blocked", reason: "shows a dialog and waits for your answer", since };
		case "ready":
			return { tone: "neutral", word: "ready", reason: "waits at its prompt", since };
		case undefined: {
			const reason = session.unanswered > 0 ? "its prompt is not recognised" : "no prompt was seen yet";
			return { tone: "neutral", word: "unknown", reason, since };
		}
		default:
			return { tone: "neutral", word: session.state, reason: "this page does not know the state", since };
	}
}

/** What a state was derived from, in words. */
export function signalWords(signal: string | undefined): string {
	return signal === undefined ? "nothing yet" : (SIGNALS[signal] ?? signal);
}

const SIGNALS: Readonly<Record<string, string>> = {
	status: "the program's status reports",
	marks: "the shell's prompt marks",
	title: "the window title",
	rows: "the rows of the screen",
	tty: "the terminal's mode",
	paste: "the paste mode",
	line: "the prompt's line",
};

/** What a person calls a session: its name, else the head of its id. */
export function sessionName(session: Pick<Session, "session" | "name">): string {
	return session.name ?? session.session.slice(0, 8);
}

/** The sessions that a name of the URL may mean: an id, a name, or the head of an id. */
export function sessionsCalled<S extends Pick<Session, "session" | "name">>(sessions: readonly S[], name: string): S[] {
	const byId = sessions.filter(({ session }) => session === name);
	if (byId.length > 0) return byId;
	const byName = sessions.filter((each) => each.name === name);
	return byName.length > 0 ? byName : sessions.filter(({ session }) => session.startsWith(name));
}

/** What was odd about a captured turn, in words. */
export function turnFlags(
	turn: Pick<CapturedTurnInfo, "interrupted" | "truncated" | "incomplete" | "unprompted">,
): string[] {
	const flags: readonly (readonly [boolean, string])[] = [
		[turn.interrupted, "interrupted"],
		[turn.truncated, "end cut off"],
		[turn.incomplete, "a part was missed"],
		[turn.unprompted, "without a prompt"],
	];
	return flags.filter(([isSet]) => isSet).map(([, word]) => word);
}

/** What waits for a person comes first, then what works, then the rest; ended sessions last. */
export function inUrgency<S extends Session>(sessions: readonly S[]): S[] {
	const rank = (session: S) => {
		if (!session.connected) return 3;
		if (session.state === "blocked") return 0;
		return session.state === "working" ? 1 : 2;
	};
	return sessions.toSorted((a, b) => rank(a) - rank(b) || (b.since ?? "").localeCompare(a.since ?? ""));
}

/** Why this server shows no sessions: the `reason` of its 404. */
export function closedWords(reason: unknown): { readonly what: string; readonly todo: string } {
	switch (reason) {
		case "no_broker":
			return {
				what: "No broker runs inside this server, so it knows no wrapped terminals.",
				todo: "The server starts one when XDG_RUNTIME_DIR is set and no other broker runs. Stop `turnkeep broker` if it runs alone, and start `turnkeep up` again.",
			};
		case "not_loopback":
			return {
				what: "This server listens on an address that other machines can reach, so it shows no terminals and none of their text.",
				todo: "Start `turnkeep up` with a loopback address, such as `--http 127.0.0.1:9010`.",
			};
		default:
			return {
				what: "This server does not show wrapped terminals.",
				todo: "`turnkeep sessions` on its machine lists them.",
			};
	}
}

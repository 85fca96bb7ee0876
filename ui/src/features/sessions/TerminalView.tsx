/** The terminal of a shared session, read-only, and the state of its connection. */

import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "react";
import type { SocketEnd, SocketState } from "../../api/run-socket";
import { StateWord } from "../../components/StateWord";
import css from "./Sessions.module.css";
import { openSharedTerminal, type ScreenSize } from "./shared-terminal";

export default function TerminalView({ session, name }: { readonly session: string; readonly name: string }) {
	const host = useRef<HTMLDivElement>(null);
	const [state, setState] = useState<SocketState>({ state: "connecting" });
	const [size, setSize] = useState<ScreenSize | null>(null);
	useEffect(() => {
		if (host.current === null) return;
		return openSharedTerminal(host.current, session, { onState: setState, onSize: setSize });
	}, [session]);
	return (
		<div className={css.terminalPart}>
			<p className={css.row}>
				<SocketWords state={state} />
				<span className={css.soft}>
					{size !== null && `${size.cols} × ${size.rows}, `}read-only: type in the terminal itself
				</span>
			</p>
			<section
				ref={host}
				aria-label={`Terminal of ${name}`}
				className={css.terminal}
				// biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard.
				tabIndex={0}
			/>
		</div>
	);
}

function SocketWords({ state }: { readonly state: SocketState }) {
	switch (state.state) {
		case "connecting":
			return (
				<StateWord tone="neutral" word="connecting">
					asks for the screen
				</StateWord>
			);
		case "open":
			return (
				<StateWord tone="running" word="live">
					as it happens
				</StateWord>
			);
		case "waiting":
			return (
				<StateWord tone="waiting" word="not live">
					the connection was lost; it is tried again
				</StateWord>
			);
		case "ended":
			return (
				<StateWord tone="neutral" word="ended">
					{END_WORDS[state.reason]}
				</StateWord>
			);
	}
}

const END_WORDS: Record<SocketEnd, string> = {
	"run-deleted": "it does not exist any more",
	"not-shared": "this terminal is not shared",
	"session-not-found": "the session is not known any more",
	"session-ended": "the session has ended; this is its last screen",
};

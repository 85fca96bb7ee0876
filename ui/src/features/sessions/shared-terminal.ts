/**
 * A shared terminal in its own emulator. It only shows: nothing that is typed or that the program asks for is sent back,
 * links do not open, and the keyboard passes through it.
 */

import { Terminal } from "@xterm/xterm";
import type { SocketState } from "../../api/run-socket";
import { windowSocket } from "../../api/window";
import { fittingFontSize, readScreen, withoutBidiControls } from "./terminal-screen";

export interface ScreenSize {
	readonly cols: number;
	readonly rows: number;
}

export interface SharedTerminalListener {
	readonly onState: (state: SocketState) => void;
	readonly onSize: (size: ScreenSize) => void;
}

/** Lines above the screen that stay while the page is open. */
const SCROLLBACK_LINES = 2_000;

/** Opens the terminal of a session in an element. Returns how to close it. */
export function openSharedTerminal(host: HTMLElement, session: string, listener: SharedTerminalListener): () => void {
	const { color, backgroundColor, fontFamily } = getComputedStyle(host);
	const terminal = new Terminal({
		disableStdin: true,
		cursorBlink: false,
		scrollback: SCROLLBACK_LINES,
		fontFamily,
		fontSize: 14,
		// The program chose its colours for a ground that it does not know.
		minimumContrastRatio: 4.5,
		theme: { foreground: color, background: backgroundColor, cursor: color, cursorAccent: backgroundColor },
		linkHandler: { activate: () => undefined },
	});
	terminal.open(host);
	terminal.attachCustomKeyEventHandler(() => false);
	// It takes no text, so nothing in it takes the focus.
	if (terminal.textarea !== undefined) terminal.textarea.disabled = true;
	const advance = letterAdvance(fontFamily);
	const fitLetters = () => {
		terminal.options.fontSize = fittingFontSize(host.clientWidth - scrollbarPx(host), terminal.cols, advance);
	};
	const resizes = new ResizeObserver(fitLetters);
	resizes.observe(host);
	let decoder = new TextDecoder();
	const close = windowSocket.follow(
		{ kind: "session", session },
		{
			onText(text) {
				const screen = readScreen(text);
				if (screen === null) return;
				if (screen.isRepaint) {
					terminal.reset();
					decoder = new TextDecoder();
				}
				terminal.resize(screen.cols, screen.rows);
				fitLetters();
				listener.onSize({ cols: screen.cols, rows: screen.rows });
			},
			onBytes: (bytes) => terminal.write(withoutBidiControls(decoder.decode(bytes, { stream: true }))),
			onState: listener.onState,
			// The list of sessions says what happened to it; the socket tries again meanwhile.
			onRefused: () => undefined,
		},
	);
	return () => {
		close();
		resizes.disconnect();
		terminal.dispose();
	};
}

/** The width of a letter in units of its size. */
function letterAdvance(fontFamily: string): number {
	const context = document.createElement("canvas").getContext("2d");
	if (context === null) return 0.6;
	context.font = `100px ${fontFamily}`;
	return context.measureText("W").width / 100;
}

/** The padding of the host and the scroll bar of the emulator. */
function scrollbarPx(host: HTMLElement): number {
	const { paddingLeft, paddingRight } = getComputedStyle(host);
	return Number.parseFloat(paddingLeft) + Number.parseFloat(paddingRight) + 16;
}

/** The messages that come before the bytes of a shared terminal. */

export interface ScreenMessage {
	readonly cols: number;
	readonly rows: number;
	/** Whether the next bytes paint the whole screen. */
	readonly isRepaint: boolean;
}

const BIDI_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A terminal gives these no cell and no meaning, but a browser would change the order of a line by them. */
export function withoutBidiControls(text: string): string {
	return text.replace(BIDI_CONTROLS, "");
}

const SIDE_MAX = 1000;

/** Reads `{"type":"screen","cols":80,"rows":24,"repaint":true}`; null if it is another message. */
export function readScreen(text: string): ScreenMessage | null {
	let message: unknown;
	try {
		message = JSON.parse(text);
	} catch {
		return null;
	}
	if (typeof message !== "object" || message === null) return null;
	const { type, cols, rows, repaint } = message as Record<string, unknown>;
	if (type !== "screen" || !isSide(cols) || !isSide(rows)) return null;
	return { cols, rows, isRepaint: repaint === true };
}

function isSide(value: unknown): value is number {
	return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= SIDE_MAX;
}

/** The size of the letters at which so many columns fit a width; never so small that nothing can be read. */
export function fittingFontSize(widthPx: number, cols: number, advance: number): number {
	const size = Math.floor((widthPx / cols / advance) * 2) / 2;
	return Math.min(FONT_PX_MAX, Math.max(FONT_PX_MIN, size));
}

const FONT_PX_MAX = 14;
const FONT_PX_MIN = 6;

/**
 * Where the tour's card stands: beside its target, or docked under the whole page. It never covers its target.
 *
 * Worked example: a window of 1280 × 800, a target of 1100 × 200 at (170, 120) and a card of 350 × 160. There is no room
 * to the right and to the left of the target. There is room below it, so the card stands at (170, 328).
 */

/** A rectangle of the window in CSS pixels. */
export interface Rect {
	readonly left: number;
	readonly top: number;
	readonly width: number;
	readonly height: number;
}

export interface Size {
	readonly width: number;
	readonly height: number;
}

interface Corner {
	readonly left: number;
	readonly top: number;
}

export type CardPlace =
	/** Over the page, with this corner at the top left. */
	| ({ readonly kind: "floating" } & Corner)
	/** In a strip of its own under the page, which gets lower by as much. */
	| { readonly kind: "docked" };

/** The sides of a target in the order in which they are tried. */
const SIDES = ["right", "left", "below", "above"] as const;
type Side = (typeof SIDES)[number];

/** Between the card and its target, and between the card and the edge of the window. */
export const CARD_GAP_PX = 8;
/** Under this width the card is always docked: beside a target it would cover most of the page. */
export const FLOAT_WIDTH_PX_MIN = 640;

interface CardRoom {
	readonly window: Size;
	readonly card: Size;
	/** The visible part of the target. */
	readonly target: Rect;
}

/** The first side with room for the whole card; docked if there is none. */
export function placeCard(room: CardRoom): CardPlace {
	const { width, height } = room.card;
	if (room.window.width < FLOAT_WIDTH_PX_MIN) return { kind: "docked" };
	for (const side of SIDES) {
		const corner = cornerAt(side, room);
		if (isInside({ ...corner, width, height }, room.window)) return { kind: "floating", ...corner };
	}
	return { kind: "docked" };
}

/** The card's corner at a side of the target. Along the side it is moved into the window. */
function cornerAt(side: Side, { window, card, target }: CardRoom): Corner {
	const left = clamp(target.left, CARD_GAP_PX, window.width - card.width - CARD_GAP_PX);
	const top = clamp(target.top, CARD_GAP_PX, window.height - card.height - CARD_GAP_PX);
	switch (side) {
		case "right":
			return { left: target.left + target.width + CARD_GAP_PX, top };
		case "left":
			return { left: target.left - card.width - CARD_GAP_PX, top };
		case "below":
			return { left, top: target.top + target.height + CARD_GAP_PX };
		case "above":
			return { left, top: target.top - card.height - CARD_GAP_PX };
	}
}

/** Where the card stands while there is nothing to point at: at the bottom right. */
export function restingPlace({ window, card }: Pick<CardRoom, "window" | "card">): CardPlace {
	const left = window.width - card.width - 2 * CARD_GAP_PX;
	const top = window.height - card.height - 2 * CARD_GAP_PX;
	if (window.width < FLOAT_WIDTH_PX_MIN || left < 0 || top < 0) return { kind: "docked" };
	return { kind: "floating", left, top };
}

/** The corner at the bottom right in which toasts appear: as wide as the widest, and as high as three of them. */
const TOASTS: Size = { width: 480, height: 160 };

/** How far toasts rise so that they do not cover the card. */
export function toastClearance(place: CardPlace, { window, card }: Pick<CardRoom, "window" | "card">): number {
	if (place.kind === "docked") return card.height;
	const isInCorner =
		place.left + card.width > window.width - TOASTS.width && place.top + card.height > window.height - TOASTS.height;
	return isInCorner ? window.height - place.top : 0;
}

function clamp(value: number, min: number, max: number): number {
	return Math.max(min, Math.min(value, max));
}

function isInside({ left, top, width, height }: Rect, window: Size): boolean {
	return left >= 0 && top >= 0 && left + width <= window.width && top + height <= window.height;
}

/** The part that two rectangles share; null if they do not meet. */
export function intersection(one: Rect, other: Rect): Rect | null {
	const left = Math.max(one.left, other.left);
	const top = Math.max(one.top, other.top);
	const width = Math.min(one.left + one.width, other.left + other.width) - left;
	const height = Math.min(one.top + one.height, other.top + other.height) - top;
	return width > 0 && height > 0 ? { left, top, width, height } : null;
}

/**
 * Keeps the tour's card and the ring around its target in their places while the page changes under them.
 *
 * Places are written to the elements and are not React state, because they change with every scroll. Each change of the
 * page leads to at most one look before the next frame is drawn. Changes of the card's own content and of the ring are
 * ignored, so the looks end when the page rests.
 */

import {
	type CardPlace,
	intersection,
	placeCard,
	type Rect,
	restingPlace,
	type Size,
	toastClearance,
} from "../../model/tour-place";

interface FollowedElements {
	readonly card: HTMLElement;
	readonly ring: HTMLElement;
}

/** The height of a docked card. Drawers and sheets end above it. */
const DOCK_PROPERTY = "--tour-dock";
/** How far toasts rise so that they do not cover the card. */
const TOASTS_PROPERTY = "--tour-toasts";
/** What can have the focus. */
const FOCUSABLE = "a[href], button, input, select, textarea, [tabindex]";
/** The space between the target and its ring. */
const RING_GAP_PX = 3;
/** A target that takes a larger part of the window is shown from its beginning. */
const TALL_PART = 0.5;

interface FollowedTarget {
	/** The target is the first element that fits, in the order of the selectors. */
	readonly selectors: readonly string[];
	/** Whether the card is docked, also where there is room beside the target. */
	readonly isDocked: boolean;
	/** Called when the target appears and when it disappears. */
	readonly onFound: (isFound: boolean) => void;
}

/** Keeps the card and the ring at the target until the returned function is called. */
export function followTarget(elements: FollowedElements, target: FollowedTarget): () => void {
	const follower = new TargetFollower(elements, target);
	follower.look();
	return () => follower.stop();
}

/** Puts the focus on the target, or on the first control in it; returns false if there is none. */
export function focusTarget(selectors: readonly string[]): boolean {
	const target = findTarget(selectors);
	const control = target?.matches(FOCUSABLE) ? target : target?.querySelector<HTMLElement>(FOCUSABLE);
	control?.focus();
	return control != null;
}

/** The first element that fits, in the order of the selectors. */
function findTarget(selectors: readonly string[]): HTMLElement | null {
	for (const selector of selectors) {
		const found = document.querySelector<HTMLElement>(selector);
		if (found !== null) return found;
	}
	return null;
}

class TargetFollower {
	#frame = 0;
	#isTargetScrolledTo = false;
	#target: HTMLElement | null = null;
	#place: CardPlace | null = null;
	#window: Size = { width: 0, height: 0 };
	readonly #sizes = new ResizeObserver(() => this.#schedule());
	readonly #changes = new MutationObserver((records) => {
		const { card, ring } = this.elements;
		if (records.some(({ target }) => !card.contains(target) && target !== ring)) this.#schedule();
	});

	constructor(
		private readonly elements: FollowedElements,
		private readonly followed: FollowedTarget,
	) {
		this.#sizes.observe(elements.card);
		this.#changes.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
		addEventListener("scroll", this.#schedule, { capture: true, passive: true });
		addEventListener("resize", this.#schedule);
	}

	readonly #schedule = (): void => {
		if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.look());
	};

	look(): void {
		this.#frame = 0;
		this.#find();
		// Only once: after that, the person scrolls.
		const isFirst = this.#target !== null && !this.#isTargetScrolledTo;
		if (isFirst) this.#scrollToTarget();
		const placed = this.#placeCard();
		// A docked card makes the page lower, which may move the target out of sight.
		if (isFirst && placed.kind === "docked") {
			this.#scrollToTarget();
			this.#schedule();
		}
		applyRing(this.elements.ring, this.#target === null ? null : visiblePart(this.#target));
	}

	#find(): void {
		const found = findTarget(this.followed.selectors);
		if (found === this.#target) return;
		if (this.#target !== null) this.#sizes.unobserve(this.#target);
		if (found !== null) this.#sizes.observe(found);
		this.#target = found;
		this.followed.onFound(found !== null);
	}

	#scrollToTarget(): void {
		const target = this.#target;
		if (target === null) return;
		this.#isTargetScrolledTo = true;
		const isTall = target.getBoundingClientRect().height > innerHeight * TALL_PART;
		target.scrollIntoView({ block: isTall ? "start" : "nearest", inline: "nearest" });
	}

	#placeCard(): CardPlace {
		const window = { width: innerWidth, height: innerHeight };
		const isResized = window.width !== this.#window.width || window.height !== this.#window.height;
		this.#window = window;
		if (isResized) this.#place = null;
		// Docking moves the target. If that made room beside it, the card would go back and forth, so it stays docked.
		if (this.#place?.kind !== "docked") this.#place = this.#findPlace(window);
		applyPlace(this.elements.card, this.#place);
		return this.#place;
	}

	#findPlace(window: Size): CardPlace {
		if (this.followed.isDocked) return { kind: "docked" };
		const { card } = this.elements;
		// A docked card is as wide as the window. What counts is its size beside a target.
		card.dataset.place = "floating";
		const room = { window, card: card.getBoundingClientRect() };
		const target = this.#target === null ? null : visiblePart(this.#target);
		if (target !== null) return placeCard({ ...room, target });
		return this.#place ?? restingPlace(room);
	}

	stop(): void {
		cancelAnimationFrame(this.#frame);
		this.#sizes.disconnect();
		this.#changes.disconnect();
		removeEventListener("scroll", this.#schedule, { capture: true });
		removeEventListener("resize", this.#schedule);
		for (const property of [DOCK_PROPERTY, TOASTS_PROPERTY]) document.documentElement.style.removeProperty(property);
	}
}

/** The part of an element that no scrolling box and no edge of the window cuts off. */
function visiblePart(element: HTMLElement): Rect | null {
	let part = intersection(element.getBoundingClientRect(), { left: 0, top: 0, width: innerWidth, height: innerHeight });
	for (let box = element.parentElement; box !== null && part !== null; box = box.parentElement) {
		const { overflowX, overflowY } = getComputedStyle(box);
		const isCutting = overflowX !== "visible" || overflowY !== "visible";
		if (isCutting) part = intersection(part, box.getBoundingClientRect());
	}
	return part;
}

function applyPlace(card: HTMLElement, place: CardPlace): void {
	card.dataset.place = place.kind;
	if (place.kind === "floating") {
		card.style.setProperty("--left", `${place.left}px`);
		card.style.setProperty("--top", `${place.top}px`);
	}
	const room = { window: { width: innerWidth, height: innerHeight }, card: card.getBoundingClientRect() };
	const root = document.documentElement.style;
	root.setProperty(DOCK_PROPERTY, place.kind === "docked" ? `${room.card.height}px` : "0px");
	root.setProperty(TOASTS_PROPERTY, `${toastClearance(place, room)}px`);
}

function applyRing(ring: HTMLElement, part: Rect | null): void {
	ring.hidden = part === null;
	if (part === null) return;
	ring.style.left = `${part.left - RING_GAP_PX}px`;
	ring.style.top = `${part.top - RING_GAP_PX}px`;
	ring.style.width = `${part.width + 2 * RING_GAP_PX}px`;
	ring.style.height = `${part.height + 2 * RING_GAP_PX}px`;
}

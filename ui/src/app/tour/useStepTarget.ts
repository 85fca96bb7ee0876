/** Keeps the card beside the target of a step, and tells whether the target is there. */

import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { followTarget } from "./follow-target";

/** A page that takes longer to show the target probably never will. */
const LATE_MS = 3_000;

export interface StepTarget {
	readonly card: RefObject<HTMLElement | null>;
	readonly ring: RefObject<HTMLDivElement | null>;
	readonly isShown: boolean;
	/** Whether the target has been missing for long. */
	readonly isLate: boolean;
}

/** The target is the first element that fits, in the order of the selectors. `isDocked` puts the card under the page. */
export function useStepTarget(selectors: readonly string[], isDocked: boolean): StepTarget {
	const card = useRef<HTMLElement>(null);
	const ring = useRef<HTMLDivElement>(null);
	const [isShown, setShown] = useState(false);
	const [isLate, setLate] = useState(false);
	const selectorText = JSON.stringify(selectors);
	// Before the browser paints, so that the card never flashes in another place.
	useLayoutEffect(() => {
		if (card.current === null || ring.current === null) return;
		const elements = { card: card.current, ring: ring.current };
		const target = { selectors: JSON.parse(selectorText) as string[], isDocked, onFound: setShown };
		const stop = followTarget(elements, target);
		return () => {
			stop();
			setShown(false);
		};
	}, [selectorText, isDocked]);
	useEffect(() => {
		if (isShown || selectorText === "[]") return;
		const timer = setTimeout(() => setLate(true), LATE_MS);
		return () => {
			clearTimeout(timer);
			setLate(false);
		};
	}, [isShown, selectorText]);
	return { card, ring, isShown, isLate };
}

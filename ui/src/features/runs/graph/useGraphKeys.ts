/** The keys of the graph. Letters act on the focused card only; what cannot be undone asks first. */

import { useReactFlow } from "@xyflow/react";
import { type RefObject, useRef } from "react";
import { type KeyBinding, useKeys } from "../../../components/keys";
import {
	CARD_HEIGHT,
	CARD_WIDTH,
	type Direction,
	neighbour,
	nextInCircle,
	type Places,
} from "../../../model/graph-layout";
import { useRunSource } from "./run-source";
import type { GraphActions } from "./useRunScreen";

interface GraphKeys {
	readonly frame: RefObject<HTMLElement | null>;
	readonly places: Places;
	readonly shown: ReadonlySet<string> | null;
	readonly actions: GraphActions;
}

const ARROWS: readonly (readonly [key: string, direction: Direction])[] = [
	["ArrowLeft", "left"],
	["ArrowRight", "right"],
	["ArrowUp", "up"],
	["ArrowDown", "down"],
];

const MOVE_MS = 120;
/** By then a card that came into view is drawn. */
const DRAWN_MS_MAX = 500;

/** The card that has the focus. */
export function focusedAgent(): string | null {
	return document.activeElement?.closest("[data-agent]")?.getAttribute("data-agent") ?? null;
}

export function useGraphKeys({ frame, places, shown, actions }: GraphKeys): void {
	const flow = useReactFlow();
	const source = useRunSource();
	const circle = useRef<{ readonly origin: string; readonly last: string; readonly mine: "from" | "to" } | null>(null);
	const visible = [...places.keys()].filter((id) => shown === null || shown.has(id));

	const goTo = (id: string | null): boolean => {
		const place = id === null ? undefined : places.get(id);
		if (id === null || place === undefined) return false;
		const { zoom } = flow.getViewport();
		const findCard = () => frame.current?.querySelector<HTMLElement>(`[data-agent="${id}"]`) ?? null;
		// A card outside of the view is drawn once it is in view, and cannot have the focus before: the view jumps to it.
		const duration = findCard() === null ? 0 : MOVE_MS;
		void flow.setCenter(place.x + CARD_WIDTH / 2, place.y + CARD_HEIGHT / 2, { zoom, duration });
		const before = document.activeElement;
		const end = performance.now() + DRAWN_MS_MAX;
		const focus = () => {
			// Meanwhile the focus may have gone elsewhere, as into a dialog.
			if (document.activeElement !== before && document.activeElement !== document.body) return;
			const card = findCard();
			card?.focus({ preventScroll: true });
			if (card === null && performance.now() < end) requestAnimationFrame(focus);
		};
		focus();
		return true;
	};
	const onFocused = (act: (id: string) => boolean | undefined) => (): boolean => {
		const id = focusedAgent();
		return id !== null && act(id) !== false;
	};
	const step = (by: 1 | -1) => () => {
		const id = focusedAgent();
		if (id === null && !(document.activeElement === document.body || frame.current?.contains(document.activeElement))) {
			// From the page's heading j goes to the first card, from a button of the page as well.
			return goTo(visible[0] ?? null);
		}
		return goTo(visible[(visible.indexOf(id ?? "") + by + visible.length) % Math.max(visible.length, 1)] ?? null);
	};
	/** Goes around the agents at the other ends of the focused one's edges, as long as the same key is pressed. */
	const around = (mine: "from" | "to", theirs: "from" | "to") =>
		onFocused((id) => {
			const origin = circle.current?.last === id && circle.current.mine === mine ? circle.current.origin : id;
			const edges = Object.values(source.state().edges).filter((edge) => edge[mine] === origin);
			const next = nextInCircle([...new Set(edges.map((edge) => edge[theirs]))], id);
			circle.current = next === null ? null : { origin, last: next, mine };
			return goTo(next);
		});
	const bindings: KeyBinding[] = [
		{ key: "j", does: "next agent", run: step(1) },
		{ key: "k", does: "previous agent", run: step(-1) },
		...ARROWS.map(([key, direction]) => ({
			key,
			does: `the agent to the ${direction}`,
			run: onFocused((id) => goTo(neighbour(places, id, direction))),
		})),
		{ key: "f", does: "look at the agent from near", run: onFocused((id) => look(id)) },
		{ key: "i", does: "go through the agents that hand work to it", run: around("to", "from") },
		{ key: "o", does: "go through the agents that it hands work to", run: around("from", "to") },
		{ key: "c", does: "connect it with another agent", run: onFocused((id) => void actions.connect(id, null)) },
		{ key: "Delete", does: "delete the agent (asks)", run: onFocused((id) => void actions.askDelete(id)) },
		{ key: "w", does: "why the agent does what it does", run: onFocused((id) => void actions.why(id)) },
		{ key: ".", does: "what can be done with the agent", run: onFocused((id) => void actions.more(id)) },
	];
	useKeys("Graph", bindings);

	function look(id: string): boolean {
		const place = places.get(id);
		if (place === undefined) return false;
		void flow.setCenter(place.x + CARD_WIDTH / 2, place.y + CARD_HEIGHT / 2, { zoom: 1.2, duration: MOVE_MS });
		return true;
	}
}

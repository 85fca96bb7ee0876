/** A long list of which only the visible part is in the document. Items may have any height. */

import { useVirtualizer, type Virtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useLayoutEffect, useRef } from "react";
import { cx } from "./cx";
import css from "./VirtualList.module.css";

export interface VirtualListProps<Item> {
	/** What it lists. */
	readonly label: string;
	readonly items: readonly Item[];
	readonly itemKey: (item: Item, at: number) => string | number;
	readonly renderItem: (item: Item, at: number) => ReactNode;
	/** The usual height of an item in pixels. */
	readonly estimate: number;
	/** Whether the end stays in view while items come, as long as the reader is at the end. */
	readonly followsEnd?: boolean;
	/** Called when the first or the last items are in view, to fetch more. */
	readonly onReachStart?: () => void;
	readonly onReachEnd?: () => void;
	/** Scrolls to this item when it changes. */
	readonly scrollTo?: number | null;
	/** The key of an item that a link names: it comes into view once, as soon as it is there. */
	readonly named?: string | number | null;
	readonly className?: string;
}

/** Items beyond the visible part, so that a quick scroll shows no gap. */
const OVERSCAN = 8;
/** So close to the end counts as at the end. */
const END_PX = 40;

export function VirtualList<Item>(props: VirtualListProps<Item>) {
	const { label, items, itemKey, renderItem, estimate, followsEnd = false, scrollTo = null, className } = props;
	const scroller = useRef<HTMLDivElement>(null);
	const isAtEnd = useRef(props.named == null);
	const virtualizer = useVirtualizer({
		count: items.length,
		getScrollElement: () => scroller.current,
		estimateSize: () => estimate,
		overscan: OVERSCAN,
		getItemKey: (at) => {
			const item = items[at];
			return item === undefined ? at : itemKey(item, at);
		},
	});
	const shown = virtualizer.getVirtualItems();
	const size = virtualizer.getTotalSize();
	useReached(props, shown[0]?.index, shown.at(-1)?.index);
	useKeptPlace(props, virtualizer);
	// Not only when an item comes: the last one may grow.
	useEffect(() => {
		if (followsEnd && isAtEnd.current && items.length > 0 && size > 0)
			virtualizer.scrollToIndex(items.length - 1, { align: "end" });
	}, [followsEnd, items.length, size, virtualizer]);
	useEffect(() => {
		if (scrollTo !== null) virtualizer.scrollToIndex(scrollTo, { align: "center" });
	}, [scrollTo, virtualizer]);
	useNamedShown(props, virtualizer);
	return (
		<div
			ref={scroller}
			className={cx(css.scroller, className)}
			onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
				isAtEnd.current = scrollHeight - scrollTop - clientHeight < END_PX;
			}}
		>
			<ul aria-label={label} className={css.list} style={{ height: size }}>
				{shown.map(({ index, key, start }) => {
					const item = items[index];
					return item === undefined ? null : (
						<li
							key={key}
							ref={virtualizer.measureElement}
							data-index={index}
							aria-setsize={items.length}
							aria-posinset={index + 1}
							className={css.item}
							style={{ transform: `translateY(${start}px)` }}
						>
							{renderItem(item, index)}
						</li>
					);
				})}
			</ul>
		</div>
	);
}

function useReached<Item>(props: VirtualListProps<Item>, first: number | undefined, last: number | undefined): void {
	const { items, onReachStart, onReachEnd } = props;
	const isFirst = first === 0;
	const isLast = last !== undefined && last === items.length - 1;
	useEffect(() => {
		if (isFirst) onReachStart?.();
	}, [isFirst, onReachStart]);
	useEffect(() => {
		if (isLast) onReachEnd?.();
	}, [isLast, onReachEnd]);
}

function useNamedShown<Item>(
	{ items, itemKey, named = null }: VirtualListProps<Item>,
	virtualizer: Virtualizer<HTMLDivElement, Element>,
): void {
	const shown = useRef<Key | null>(null);
	useEffect(() => {
		if (named === null || shown.current === named) return;
		const at = items.findIndex((item, index) => itemKey(item, index) === named);
		if (at < 0) return;
		shown.current = named;
		virtualizer.scrollToIndex(at, { align: "center" });
	});
}

/**
 * What is in view stays there while items are put before it. The first items may stay first (the header of a part becomes
 * that of the whole), so the last item in view is the one that keeps its place.
 */
function useKeptPlace<Item>(
	{ items, itemKey }: VirtualListProps<Item>,
	virtualizer: Virtualizer<HTMLDivElement, Element>,
): void {
	const seen = useRef<{ readonly key: Key; readonly at: number; readonly start: number } | null>(null);
	const inView = virtualizer.getVirtualItems().at(-1);
	useLayoutEffect(() => {
		const before = seen.current;
		const known = before === null ? undefined : items[before.at];
		const isMoved = before !== null && (known === undefined || itemKey(known, before.at) !== before.key);
		if (isMoved) {
			const at = items.findIndex((each, index) => itemKey(each, index) === before.key);
			const start = virtualizer.measurementsCache[at]?.start;
			const scroller = virtualizer.scrollElement;
			if (at > before.at && start !== undefined && scroller !== null) scroller.scrollTop += start - before.start;
		}
		const item = inView === undefined ? undefined : items[inView.index];
		seen.current =
			inView === undefined || item === undefined
				? null
				: { key: itemKey(item, inView.index), at: inView.index, start: inView.start };
	});
}

type Key = string | number;

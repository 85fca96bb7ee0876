/** The icons: lines of 1.5 on a 16-px field, drawn here so that nothing is loaded. Decoration only: a word names it. */

const SHAPES = {
	inbox: "M2 9.5 4 3h8l2 6.5V13H2zM2 9.5h3.5l1 1.5h3l1-1.5H14",
	runs: "M3.5 3.5h3v3h-3zM9.5 9.5h3v3h-3zM5 6.5V11h4.5M6.5 5H11v4.5",
	sessions: "M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10.5H11",
	ledgers: "M3 2.5h8.5a1.5 1.5 0 0 1 1.5 1.5v9.5H4.5A1.5 1.5 0 0 1 3 12zM3 12a1.5 1.5 0 0 1 1.5-1.5H13M6 5.5h4M6 8h4",
	history: "M4 3v10M4 6.5c0 3 6 1 6 4V13M10 5.5V9M2.5 3h3M8.5 4h3",
	system: "M3 4.5h6M12 4.5h1M10 3v3M3 11.5h1M7 11.5h6M5.5 10v3",
	search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5l3 3",
	close: "M4 4l8 8M12 4l-8 8",
	copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
	check: "M3 8.5 6.5 12 13 4.5",
	warning: "M8 2.5 14 13H2zM8 6.5v3M8 11v.5",
	lock: "M4 7.5h8v5.5H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
	right: "M6 3.5 10.5 8 6 12.5",
	down: "M3.5 6 8 10.5 12.5 6",
	back: "M10 3.5 5.5 8l4.5 4.5",
	more: "M3.5 8h.5M7.75 8h.5M12 8h.5",
	plus: "M8 3v10M3 8h10",
	minus: "M3 8h10",
	fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
	theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
	keys: "M2 4.5h12v7H2zM4.5 7h.5M7.75 7h.5M11 7h.5M5 9.5h6",
	chain: "M6.5 9.5l3-3M7 4.5l1.5-1.5a2.5 2.5 0 0 1 4 3.5L11 8M9 11.5 7.5 13a2.5 2.5 0 0 1-4-3.5L5 8",
	file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
	folder: "M2 4h4.5L8 5.5h6V13H2z",
	person: "M8 3a2.25 2.25 0 1 1 0 4.5A2.25 2.25 0 0 1 8 3zM3.5 13c.5-3 2-4 4.5-4s4 1 4.5 4",
	agent: "M3.5 6h9v6.5h-9zM8 6V3.5M6 9h.5M9.5 9h.5",
	fork: "M4.5 3v10M4.5 9c5 0 6.5-1.5 6.5-4.5M9.5 6 11 4.5 12.5 6",
	circle: "M8 3.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9z",
	dot: "M8 6.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z",
	pause: "M5.5 4v8M10.5 4v8",
	play: "M5 3.5 12 8l-7 4.5z",
	external: "M6.5 4H3.5v8.5H12v-3M9 3h4v4M13 3 7.5 8.5",
} as const;

export type IconName = keyof typeof SHAPES;

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
	return (
		<svg width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false" style={{ flex: "none" }}>
			<path
				d={SHAPES[name]}
				fill="none"
				stroke="currentColor"
				strokeWidth="1.5"
				strokeLinecap="round"
				strokeLinejoin="round"
			/>
		</svg>
	);
}

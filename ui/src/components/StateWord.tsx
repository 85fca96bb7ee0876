/** A state as a word with a shape and a hue: "● running", "▲ waits for you", "✕ failed", "✓ done", "○ idle". */

import type { ReactNode } from "react";
import { cx } from "./cx";
import css from "./StateWord.module.css";

export type StateTone = "running" | "waiting" | "failed" | "done" | "neutral";

const SHAPES: Record<StateTone, string> = { running: "●", waiting: "▲", failed: "✕", done: "✓", neutral: "○" };

export interface StateWordProps {
	readonly tone: StateTone;
	/** The state in the words of the program: "blocked", "paused". */
	readonly word: string;
	/** Why, and for how long: "waits for your approval · 4 min". */
	readonly children?: ReactNode;
}

export function StateWord({ tone, word, children }: StateWordProps) {
	return (
		<span className={css.state}>
			<span className={cx(css.word, css[tone])}>
				<span aria-hidden="true" className={css.shape}>
					{SHAPES[tone]}
				</span>
				{word}
			</span>
			{children !== undefined && <span className={css.reason}> · {children}</span>}
		</span>
	);
}

/** How long to wait, as timers understand it. */

/** The longest that a timer waits, 24 days; asked for more it would not wait at all. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** A time-out's milliseconds; `Infinity` is the longest that there is. Throws a `TypeError` unless it is positive. */
export function timeLimit(name: string, ms: number): number {
	if (!(ms > 0)) throw new TypeError(`${name} must be a positive number of milliseconds or Infinity, not ${ms}`);
	return Math.min(ms, TIMER_MS_MAX);
}

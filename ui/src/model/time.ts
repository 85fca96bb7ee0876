/** Times as people read them: relative in the text, exact on hover. All input is RFC 3339 text or milliseconds. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Milliseconds since 1970; null if the text is no time. */
export function parseTime(time: string | number): number | null {
	const ms = typeof time === "number" ? time : Date.parse(time);
	return Number.isFinite(ms) ? ms : null;
}

/** How long something lasted or lasts: "4 min", "2 h 5 min". The largest unit, and the next one while it says much. */
export function formatDuration(ms: number): string {
	const whole = Math.max(0, ms);
	if (whole < SECOND) return `${Math.round(whole)} ms`;
	if (whole < 10 * SECOND) return `${(Math.floor(whole / 100) / 10).toFixed(1)} s`;
	if (whole < MINUTE) return `${Math.floor(whole / SECOND)} s`;
	if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
	if (whole < DAY) return withRest(Math.floor(whole / HOUR), "h", Math.floor((whole % HOUR) / MINUTE), "min");
	const days = Math.floor(whole / DAY);
	return withRest(days, days === 1 ? "day" : "days", Math.floor((whole % DAY) / HOUR), "h");
}

function withRest(value: number, unit: string, rest: number, restUnit: string): string {
	return rest === 0 ? `${value} ${unit}` : `${value} ${unit} ${rest} ${restUnit}`;
}

/** An age in coarse steps, so that a list does not flicker: "now", "40 s", "4 min", "3 h", "2 days". */
export function formatAge(since: number, now: number): string {
	const age = now - since;
	if (age < 5 * SECOND) return "now";
	if (age < MINUTE) return `${Math.floor(age / (5 * SECOND)) * 5} s`;
	if (age < HOUR) return `${Math.floor(age / MINUTE)} min`;
	if (age < DAY) return `${Math.floor(age / HOUR)} h`;
	const days = Math.floor(age / DAY);
	return days === 1 ? "1 day" : `${days} days`;
}

/** "4 min ago", "in 10 min". Times a moment ahead count as now: two clocks never agree completely. */
export function formatRelative(time: number, now: number): string {
	if (time - now >= 5 * SECOND) return `in ${formatAge(now, time)}`;
	const age = formatAge(time, now);
	return age === "now" ? "now" : `${age} ago`;
}

/** The exact time in the reader's time zone: "2026-11-18 14:40:12.118 +01:00". */
export function formatExact(time: number): string {
	const date = new Date(time);
	const two = (value: number) => String(value).padStart(2, "0");
	const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
	const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
	const ms = String(date.getMilliseconds()).padStart(3, "0");
	return `${day} ${clock}.${ms} ${formatOffset(-date.getTimezoneOffset())}`;
}

function formatOffset(minutes: number): string {
	const sign = minutes < 0 ? "−" : "+";
	const absolute = Math.abs(minutes);
	const two = (value: number) => String(value).padStart(2, "0");
	return `${sign}${two(Math.floor(absolute / 60))}:${two(absolute % 60)}`;
}

/** The time of day, for times of today: "17:00". */
export function formatClock(time: number): string {
	const date = new Date(time);
	return `${String(date.getHours()).padStart(2, "0")}:${String(date.getMinutes()).padStart(2, "0")}`;
}

/** When an age that is shown changes next, so that a clock ticks no more often than it must. */
export function nextAgeChange(since: number, now: number): number {
	const age = Math.abs(now - since);
	if (age < MINUTE) return 5 * SECOND;
	if (age < HOUR) return MINUTE - (age % MINUTE) + 50;
	return HOUR - (age % HOUR) + 50;
}

/** The time of day with its seconds, for lists of what happened: "17:00:04". */
export function formatClockSeconds(time: number): string {
	return `${formatClock(time)}:${String(new Date(time).getSeconds()).padStart(2, "0")}`;
}

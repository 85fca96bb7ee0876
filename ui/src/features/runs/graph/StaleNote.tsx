/** Says how old the picture is while the run's own connection is away. It says nothing about the agents: they go on. */

import { useSyncExternalStore } from "react";
import type { LiveRun } from "../../../api/live-run";
import { Time, useNow } from "../../../components/Time";
import css from "./RunView.module.css";

/** A reconnect usually takes less than this and is not worth a word. */
const QUIET_MS = 3_000;

export function StaleNote({ run }: { readonly run: LiveRun }) {
	const now = useNow();
	const asOf = useSyncExternalStore(run.subscribe, () => {
		const view = run.view();
		return view.status === "shown" && !view.isLive ? view.asOf : null;
	});
	if (asOf === null || now - asOf < QUIET_MS) return null;
	return (
		<p className={css.stale}>
			Reconnecting. Shown as it was <Time at={asOf} />.
		</p>
	);
}

/** The connection as it is: a word in the top bar, and a line above the page while something is wrong. */

import { useEffect, useRef } from "react";
import { type Connection, useConnection, useIsOutdated } from "../api/connection";
import { announce } from "../components/announce";
import { Button } from "../components/Button";
import { StateWord } from "../components/StateWord";
import { Time } from "../components/Time";
import css from "./ConnectionState.module.css";

export function ConnectionState() {
	const connection = useConnection();
	const before = useRef(connection.state);
	useEffect(() => {
		if (before.current === connection.state) return;
		const wasLost = before.current === "reconnecting" || before.current === "stopped";
		before.current = connection.state;
		if (connection.state === "connected" && wasLost) announce("Connected again");
		if (connection.state === "reconnecting") announce("The connection was lost. Reconnecting.", "assertive");
		if (connection.state === "stopped") announce("The server does not answer.", "assertive");
	}, [connection]);
	return (
		<span className={css.state} data-connection={connection.state}>
			{wordOf(connection)}
		</span>
	);
}

function wordOf(connection: Connection) {
	switch (connection.state) {
		case "connected":
			return <StateWord tone="done" word="connected" />;
		case "connecting":
			return <StateWord tone="neutral" word="connecting" />;
		case "reconnecting":
			return <StateWord tone="waiting" word="reconnecting" />;
		case "stopped":
			return <StateWord tone="failed" word="server stopped" />;
		case "signed-out":
			return <StateWord tone="waiting" word="signed out" />;
	}
}

/** Says what the page is worth while it is not connected, or that it must be reloaded. */
export function ConnectionNotice() {
	const connection = useConnection();
	const isOutdated = useIsOutdated();
	if (isOutdated) {
		return (
			<div className={css.notice} role="status">
				<span>The server was upgraded. Reload to get the pages that fit it; typed text is kept.</span>
				<Button look="primary" onClick={() => location.reload()}>
					Reload
				</Button>
			</div>
		);
	}
	switch (connection.state) {
		case "connected":
		case "connecting":
		case "signed-out":
			return null;
		case "reconnecting":
			return (
				<div className={css.notice}>
					<p>
						The connection was lost <Time at={connection.since} />. What you see is as old as that; it says nothing
						about what agents do now.
					</p>
				</div>
			);
		case "stopped":
			return (
				<div className={css.notice}>
					<p>
						Nothing has answered at {location.host} since <Time at={connection.since} format="exact" />. If the server
						was stopped, start it with <code>turnkeep up</code>. Typed text is kept.
					</p>
				</div>
			);
	}
}

/**
 * Signing in: open the printed link, or give the token. The server's answer leads to the page that was wanted.
 *
 * It is a form and no request of the page, so that the token stands in no address and no script of ours keeps it.
 */

import { useState } from "react";
import { Button } from "../components/Button";
import { CommandLine } from "../components/EmptyState";
import { TextField } from "../components/Field";
import { Page } from "../components/Page";
import css from "./SignIn.module.css";

export function SignIn({ next }: { readonly next: string }) {
	const [token, setToken] = useState("");
	return (
		<Page title="Sign in">
			<div className={css.signIn}>
				<p>
					This server does not know this browser. Open the link that <code>turnkeep up</code> printed, or give the
					token. What you typed is kept in this tab: open the form again, and it is there.
				</p>
				<p>The token is in the data directory, in a file that only its owner can read:</p>
				<CommandLine command="cat ~/.local/share/turnkeep/token" />
				<form method="post" action="/signin" className={css.form}>
					<TextField
						label="Token"
						name="token"
						type="password"
						autoComplete="current-password"
						required
						value={token}
						onChange={(event) => setToken(event.target.value)}
					/>
					{/* The server sends a browser to paths of its own only. */}
					<input type="hidden" name="next" value={next} />
					<Button type="submit" look="primary" blocked={token.trim() === "" ? "Give the token first" : null}>
						Sign in
					</Button>
				</form>
			</div>
		</Page>
	);
}

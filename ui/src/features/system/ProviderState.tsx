/** Whether a program can be used, and what to do if not. */

import { SafeText } from "../../components/SafeText";
import { StateWord } from "../../components/StateWord";
import type { Provider } from "./provider";

export function ProviderState({ provider }: { readonly provider: Provider }) {
	const hint = provider.hint == null ? null : <SafeText text={provider.hint} />;
	if (!provider.found) {
		return (
			<StateWord tone="neutral" word="not found">
				{hint ?? "it is not on the server’s machine"}
			</StateWord>
		);
	}
	if (provider.loggedIn === false) {
		return (
			<StateWord tone="waiting" word="not logged in">
				{hint ?? "log in with the program itself, then check again"}
			</StateWord>
		);
	}
	const word = provider.loggedIn === true ? "ready" : "found";
	return (
		<StateWord tone="done" word={word}>
			{hint ?? (provider.loggedIn === true ? "logged in" : "it does not say whether it is logged in")}
		</StateWord>
	);
}

/** The state of a session: the word, the reason, and for how long. */

import { StateWord } from "../../components/StateWord";
import { Time } from "../../components/Time";
import { type Session, sessionWords } from "../../model/session";

export function SessionState({ session }: { readonly session: Session }) {
	const { tone, word, reason, since } = sessionWords(session);
	return (
		<StateWord tone={tone} word={word}>
			{reason}
			{since !== null && (
				<>
					{" · "}
					<Time at={since} format="age" />
				</>
			)}
		</StateWord>
	);
}

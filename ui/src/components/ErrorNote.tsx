/** An error in place: what happened, what to do, and the code to copy. */

import { errorWords } from "../api/errors";
import { Button } from "./Button";
import { CopyButton } from "./CopyButton";
import css from "./ErrorNote.module.css";
import { Icon } from "./Icon";
import { SafeText } from "./SafeText";

export interface ErrorNoteProps {
	readonly error: unknown;
	/** What did not happen: "The message was not sent." */
	readonly context?: string;
	readonly onRetry?: () => void;
}

export function ErrorNote({ error, context, onRetry }: ErrorNoteProps) {
	const { what, hint, code } = errorWords(error);
	return (
		<div role="alert" className={css.note}>
			<span className={css.icon}>
				<Icon name="warning" />
			</span>
			<div>
				<p>
					{context !== undefined && <strong>{context} </strong>}
					<SafeText text={what} />
				</p>
				{hint !== null && <p className={css.hint}>{hint}</p>}
				<p className={css.row}>
					{onRetry !== undefined && <Button onClick={onRetry}>Try again</Button>}
					{code !== null && (
						<>
							<code className={css.code}>{code}</code>
							<CopyButton text={`${code}: ${what}`} label="Copy the error" />
						</>
					)}
				</p>
			</div>
		</div>
	);
}

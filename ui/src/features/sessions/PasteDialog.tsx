/** Types the relay buffer, as it is, into the session's program. */

import { useState } from "react";
import { useActionBlock } from "../../api/connection";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { Checkbox } from "../../components/Field";
import { toast } from "../../components/toasts";
import { type Session, sessionName } from "../../model/session";
import { safeText } from "../../model/text-safety";
import css from "./Sessions.module.css";
import { usePaste } from "./useSessionActions";

export function PasteDialog({ session, onClose }: { readonly session: Session; readonly onClose: () => void }) {
	const [isForced, setForced] = useState(false);
	const paste = usePaste(session.session);
	const block = useActionBlock();
	const name = safeText(sessionName(session));
	const send = () => {
		const onSuccess = () => {
			toast(`Pasted into ${name}`);
			onClose();
		};
		paste.mutate({ raw: false, bracketed: true, force: isForced }, { onSuccess });
	};
	return (
		<Dialog
			title={`Paste the relay buffer into ${name}?`}
			isOpen
			onClose={onClose}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button look="primary" blocked={block} isPending={paste.isPending} onClick={send}>
						{`Paste into ${name}`}
					</Button>
				</>
			}
		>
			<p>The buffer holds the turn that was captured last, here or on the command line.</p>
			<p className={css.warning}>Lines that are pasted into a shell run.</p>
			<Checkbox
				label="Also while it shows a dialog, which takes the text as its answer"
				isOn={isForced}
				onChange={setForced}
			/>
			{paste.error !== null && <ErrorNote context="Nothing was pasted." error={paste.error} />}
		</Dialog>
	);
}

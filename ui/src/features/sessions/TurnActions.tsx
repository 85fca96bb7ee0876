/** Capture, deliver, keep: for one captured turn, or for the latest one. */

import { useState } from "react";
import { useActionBlock } from "../../api/connection";
import { Button } from "../../components/Button";
import { ErrorNote } from "../../components/ErrorNote";
import type { Session } from "../../model/session";
import { DeliverDialog } from "./DeliverDialog";
import css from "./Sessions.module.css";
import { useCapture, useKeep } from "./useSessionActions";

export interface TurnActionsProps {
	readonly session: Session;
	/** The other sessions, which can be delivered to. */
	readonly others: readonly Session[];
	/** The turn's number; null means the latest. */
	readonly seq: string | null;
	/** Why the turn cannot be used. */
	readonly blocked?: string | null;
}

export function TurnActions({ session, others, seq, blocked = null }: TurnActionsProps) {
	const [isDelivering, setDelivering] = useState(false);
	const capture = useCapture(session.session, seq);
	const keep = useKeep(session.session, seq);
	const block = useActionBlock() ?? blocked;
	const which = seq === null ? " latest turn" : "";
	return (
		<div>
			<div className={css.row}>
				<Button blocked={block} isPending={capture.isPending} onClick={() => capture.mutate({})}>
					{`Capture${which}`}
				</Button>
				<Button look="primary" blocked={block} onClick={() => setDelivering(true)}>
					{`Deliver${which}…`}
				</Button>
				<Button blocked={block} isPending={keep.isPending} onClick={() => keep.mutate({})}>
					{`Keep${which} in History`}
				</Button>
			</div>
			{capture.error !== null && <ErrorNote context="The relay buffer is as it was." error={capture.error} />}
			{keep.error !== null && <ErrorNote context="It was not kept." error={keep.error} />}
			{isDelivering && (
				<DeliverDialog session={session} others={others} seq={seq} onClose={() => setDelivering(false)} />
			)}
		</div>
	);
}

/** What the operator can declare about the ledger's clock. */

import { useState } from "react";
import { useActionBlock } from "../../api/connection";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { ErrorNote } from "../../components/ErrorNote";
import { TextField } from "../../components/Field";
import { useDraft } from "../../components/useDraft";
import type { Ledger } from "../../model/ledger";
import css from "./Ledgers.module.css";
import { ledgerError } from "./ledger-error";
import { useWrite } from "./useWrite";

const OPERATOR = { kind: "operator" } as const;

export function ClockActions({ world, ledger }: { readonly world: string; readonly ledger: Ledger }) {
	const [isSetting, setSetting] = useState(false);
	const block = useActionBlock();
	const write = useWrite(world, OPERATOR);
	const { paused } = ledger.world_time;
	return (
		<>
			<p className={css.buttons}>
				<Button
					icon={paused ? "play" : "pause"}
					blocked={block}
					isPending={write.isPending}
					onClick={() => write.mutate({ text: "", declared: { pause: !paused } })}
				>
					{paused ? "Resume the clock" : "Pause the clock"}
				</Button>
				<Button onClick={() => setSetting(true)}>Set the time…</Button>
			</p>
			{write.error !== null && !isSetting && (
				<ErrorNote context="The clock was not changed." error={ledgerError(write.error)} />
			)}
			{isSetting && <TimeDialog world={world} ledger={ledger} onClose={() => setSetting(false)} />}
		</>
	);
}

function TimeDialog(props: { readonly world: string; readonly ledger: Ledger; readonly onClose: () => void }) {
	const { world, ledger, onClose } = props;
	const [time, setTime, clear] = useDraft(`clock:${world}`);
	const done = () => {
		clear();
		onClose();
	};
	const block = useActionBlock();
	const write = useWrite(world, OPERATOR);
	return (
		<Dialog title="Set the time of the ledger" isOpen onClose={onClose}>
			<form
				onSubmit={(event) => {
					event.preventDefault();
					if (block === null && time !== "" && !write.isPending)
						write.mutate({ text: "", declared: { time } }, { onSuccess: done });
				}}
			>
				<TextField
					label="Time"
					type="datetime-local"
					step="1"
					value={time}
					hint={`In the ledger’s time zone, ${ledger.timezone}. Time never goes back: not before ${ledger.world_time.time}.`}
					onChange={(event) => setTime(event.target.value)}
				/>
				{write.error !== null && <ErrorNote context="The clock was not changed." error={ledgerError(write.error)} />}
				<Button
					type="submit"
					look="primary"
					blocked={block ?? (time === "" ? "Choose the time first" : null)}
					isPending={write.isPending}
				>
					Set the time
				</Button>
			</form>
		</Dialog>
	);
}

/** A program of one's own: the part of the configuration file that adds it. The server reads that file when it starts. */

import { useState } from "react";
import { Dialog } from "../../components/Dialog";
import { CommandLine } from "../../components/EmptyState";
import { SelectField, TextField } from "../../components/Field";
import { useDraft } from "../../components/useDraft";
import { PROTOCOLS, type Protocol, programToml } from "./provider";
import css from "./System.module.css";

export function NewProvider({ onClose }: { readonly onClose: () => void }) {
	const [name, setName] = useDraft("new-provider-name");
	const [command, setCommand] = useDraft("new-provider-command");
	const [protocol, setProtocol] = useState<Protocol>("raw");
	return (
		<Dialog title="Add a program" isOpen onClose={onClose} width="wide">
			<TextField
				label="Name"
				placeholder="mine"
				value={name}
				onChange={(event) => setName(event.currentTarget.value)}
			/>
			<TextField
				label="Command"
				placeholder="/opt/mine/agent"
				value={command}
				onChange={(event) => setCommand(event.currentTarget.value)}
			/>
			<SelectField label="How it speaks" value={protocol} options={PROTOCOLS} onChange={setProtocol} />
			<div className={css.stack}>
				<p>Put this into the server’s configuration file, and start the server again:</p>
				<CommandLine command={programToml({ name: name || "mine", command: command || "/opt/mine/agent", protocol })} />
				<p className={css.soft}>
					<code>turnkeep config show</code> names the file. Programs are not added from a browser: whoever could do that
					could run anything on the server’s machine.
				</p>
			</div>
		</Dialog>
	);
}

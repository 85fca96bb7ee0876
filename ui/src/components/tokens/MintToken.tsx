/** Makes a token for a person, and shows it once with the line to paste. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { idempotent, useFormKey } from "../../api/idempotency";
import { keys } from "../../api/keys";
import { AGENT_PROGRAMS, type AgentProgram, connectLine } from "../../model/connect-line";
import type { Schema } from "../../model/schema";
import { Button } from "../Button";
import { CommandLine } from "../EmptyState";
import { ErrorNote } from "../ErrorNote";
import { Checkbox, TextField } from "../Field";
import { Segments } from "../Tabs";
import { useDraft } from "../useDraft";
import css from "./Tokens.module.css";

export interface MintTokenProps {
	readonly world: string;
	readonly person: string;
	readonly name: string;
}

export function MintToken({ world, person, name }: MintTokenProps) {
	const [mayWrite, setMayWrite] = useState(true);
	const [end, setEnd, clearEnd] = useDraft(`token:${world}/${person}`);
	const form = useFormKey();
	const client = useQueryClient();
	const block = useActionBlock();
	const mint = useMutation({
		mutationFn: () => {
			const body = {
				person_id: person,
				write: mayWrite,
				expires_at: end === "" ? null : new Date(end).toISOString(),
			};
			const params = { path: { world } };
			return answer(api.POST("/v1/worlds/{world}/tokens", { params, body, headers: idempotent(form.key) }));
		},
		onSuccess() {
			form.renew();
			clearEnd();
			void client.invalidateQueries({ queryKey: keys.world(world, "tokens") });
		},
		onError: form.renewIfRefused,
	});
	const submit = (event: FormEvent) => {
		event.preventDefault();
		if (block === null && !mint.isPending) mint.mutate();
	};
	return (
		<>
			<form onSubmit={submit}>
				<p className={css.soft}>
					{`A token opens this ledger, and nothing else, as ${name}. The agent that has it sees what ${name} sees.`}
				</p>
				<p>
					<Checkbox label={`It may also write as ${name}`} isOn={mayWrite} onChange={setMayWrite} />
				</p>
				<div className={css.fields}>
					<TextField
						label="Ends, in your time zone (optional)"
						type="datetime-local"
						value={end}
						onChange={(event) => setEnd(event.target.value)}
					/>
					<p>
						<Button type="submit" look="primary" blocked={block} isPending={mint.isPending}>
							{`Make a token for ${name}`}
						</Button>
					</p>
				</div>
				{mint.error !== null && (
					<ErrorNote context="No token was made, as far as this page knows." error={mint.error} />
				)}
			</form>
			{mint.data !== undefined && <Minted world={world} minted={mint.data} />}
		</>
	);
}

function Minted({ world, minted }: { readonly world: string; readonly minted: Schema<"MintedToken"> }) {
	const [program, setProgram] = useState<AgentProgram>("claude");
	const line = connectLine(program, {
		server: location.origin,
		ledger: world,
		person: minted.person_id,
		token: minted.token,
	});
	return (
		<div role="status" className={css.secret}>
			<p>
				<strong>This token is shown this once.</strong> Copy it now; whoever has it can use it.
			</p>
			<CommandLine command={minted.token} />
			<p>Or paste the line that connects an agent, in a terminal of the machine where it runs:</p>
			<Segments
				label="Agent program"
				value={program}
				options={AGENT_PROGRAMS.map((each) => ({ value: each, label: each }))}
				onChange={setProgram}
			/>
			<CommandLine command={line} />
		</div>
	);
}

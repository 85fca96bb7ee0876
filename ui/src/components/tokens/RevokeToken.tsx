/** Asks before a token is revoked, and revokes it. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useActionBlock } from "../../api/connection";
import { answer, api } from "../../api/http";
import { keys } from "../../api/keys";
import type { Schema } from "../../model/schema";
import { ConfirmDialog } from "../ConfirmDialog";
import { toast } from "../toasts";

export interface RevokeTokenProps {
	readonly world: string;
	/** What people see of the person whose token it is. */
	readonly name: string;
	readonly token: Schema<"Token">;
	readonly onRevoked: () => void;
	readonly onClose: () => void;
}

export function RevokeToken({ world, name, token, onRevoked, onClose }: RevokeTokenProps) {
	const client = useQueryClient();
	const block = useActionBlock();
	const revoke = useMutation({
		mutationFn: () => {
			const path = { world, token: token.token_id };
			return answer(api.DELETE("/v1/worlds/{world}/tokens/{token}", { params: { path } }));
		},
		onSuccess() {
			void client.invalidateQueries({ queryKey: keys.world(world, "tokens") });
			toast(`Revoked ${token.token_id}`);
			onRevoked();
			onClose();
		},
	});
	return (
		<ConfirmDialog
			title={`Revoke the token ${token.token_id}?`}
			verb="Revoke token"
			isOpen
			isPending={revoke.isPending}
			blocked={block}
			error={revoke.error}
			onConfirm={() => revoke.mutate()}
			onClose={onClose}
		>
			{`An agent that uses it can no longer read or write as ${name}. What it wrote stays in the ledger, and so does the line that says that the token was made.`}
		</ConfirmDialog>
	);
}

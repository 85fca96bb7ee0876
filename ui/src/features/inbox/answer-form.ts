import type { Schema } from "../../model/schema";

/** What every form below an approval gets. */
export interface AnswerFormProps {
	readonly approval: Schema<"ApprovalView">;
	/** Why nothing can be sent now. */
	readonly block: string | null;
	readonly isPending: boolean;
	readonly onSend: (body: Schema<"ResolveApproval">) => void;
	readonly onClose: () => void;
}

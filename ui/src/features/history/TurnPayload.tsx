/** The payload of a turn: its fields, what the type does not know, and its bytes, as far as the answer has them. */

import { JsonView } from "../../components/JsonView";
import { LongText } from "../../components/LongText";
import { formatBytes } from "../../model/quantity";
import type { Schema } from "../../model/schema";
import { safeText } from "../../model/text-safety";
import css from "./History.module.css";

export function TurnPayload({ turn }: { readonly turn: Schema<"Turn"> }) {
	const { data, unknown, warnings = [] } = turn;
	const bytes = turn.bytes_hex ?? turn.bytes_b64;
	return (
		<>
			{warnings.length > 0 && (
				<ul className={css.warning} aria-label="Warnings">
					{warnings.map(({ path, message }) => (
						<li key={`${path} ${message}`}>{`${safeText(path)}: ${safeText(message)}`}</li>
					))}
				</ul>
			)}
			{data !== undefined && (
				<section className={css.part}>
					<h3>Fields</h3>
					<JsonView value={data} label="Fields" />
				</section>
			)}
			{unknown !== undefined && (
				<section className={css.part}>
					<h3>Unknown fields, by tag</h3>
					<JsonView value={unknown} label="Unknown fields" />
				</section>
			)}
			{bytes !== undefined && (
				<section className={css.part}>
					<h3>{turn.bytes_hex === undefined ? "Bytes, base64" : "Bytes, hex"}</h3>
					<div className={css.text}>
						<LongText text={bytes === "" ? "no bytes" : bytes} />
					</div>
				</section>
			)}
			{turn.bytes_len !== undefined && <p className={css.part}>{`${formatBytes(turn.bytes_len)} of payload`}</p>}
		</>
	);
}

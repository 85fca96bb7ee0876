/** Where a turn stands, and what it is made of. */

import type { ReactNode } from "react";
import { Link, useSearch } from "wouter";
import { paths } from "../../app/paths";
import { Facts } from "../../components/Card";
import { RefChip } from "../../components/refs/RefChip";
import { Time } from "../../components/Time";
import { formatBytes } from "../../model/quantity";
import type { Schema } from "../../model/schema";
import css from "./History.module.css";

export function TurnFacts({ turn, context }: { readonly turn: Schema<"Turn">; readonly context: string }) {
	const search = useSearch();
	const query = search === "" ? "" : `?${search}`;
	const isRoot = turn.parent_turn_id === "0";
	const facts: (readonly [string, ReactNode])[] = [
		["Appended", <Time key="at" at={turn.created_at} />],
		["To", <RefChip key="to" to={`ctx:${turn.context_id}`} name={`history ${turn.context_id}`} />],
		["Depth", turn.depth],
		[
			"Parent",
			isRoot ? (
				"none: it is the first turn"
			) : (
				<Link key="parent" href={`${paths.historyTurn(context, turn.parent_turn_id)}${query}`}>
					{`Turn ${turn.parent_turn_id}`}
				</Link>
			),
		],
		["Declared type", <TypeChip key="type" type={turn.declared_type} />],
	];
	if (turn.decoded_as !== undefined) facts.push(["Read as", <TypeChip key="as" type={turn.decoded_as} />]);
	if (turn.uncompressed_len !== undefined) facts.push(["Size", formatBytes(turn.uncompressed_len)]);
	if (turn.content_hash_b3 !== undefined) {
		facts.push(["Payload", <RefChip key="blob" to={`blob:${turn.content_hash_b3}`} />]);
	}
	if (turn.fs_root_hash !== undefined) {
		facts.push(["Files", <RefChip key="fs" to={`blob:${turn.fs_root_hash}`} name="root of its files" />]);
	}
	return (
		<div className={css.part}>
			<Facts facts={facts} />
		</div>
	);
}

function TypeChip({ type }: { readonly type: Schema<"TypeName"> }) {
	if (type.type_id === "") return "none";
	const name = `${type.type_id}@${type.type_version}`;
	return <RefChip to={`type:${name}`} name={name} />;
}

/** Why something is there: its cause, the cause of that, and so on up to a person, each a chip with its own words. */

import { useQuery } from "@tanstack/react-query";
import { parseRef } from "../../model/refs";
import type { Schema } from "../../model/schema";
import { Drawer } from "../Drawer";
import { ErrorNote } from "../ErrorNote";
import { SafeText } from "../SafeText";
import { Skeleton } from "../Skeleton";
import { Time } from "../Time";
import { RefChip } from "./RefChip";
import css from "./WhyPanel.module.css";
import { whyQuery } from "./why-query";
import { closeWhy, useExplained } from "./why-store";

/** The panel of the shell: shows the chain of the ref that was asked for last. */
export function WhyPanel() {
	const ref = useExplained();
	if (ref === null) return null;
	return (
		<Drawer key={ref} title="Why is this here?" onClose={closeWhy}>
			<WhyChain of={ref} />
		</Drawer>
	);
}

/** The chain itself, for use in a page. */
export function WhyChain({ of }: { readonly of: string }) {
	const { data, error, isPending, refetch } = useQuery(whyQuery(of));
	if (isPending) return <Skeleton label="Loading the chain" lines={6} />;
	if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />;
	return (
		<>
			<ol className={css.chain}>
				{data.chain.map((link) => (
					<Link key={`${link.kind} ${link.ref}`} link={link} />
				))}
			</ol>
			<p className={css.end}>{endOf(data)}</p>
		</>
	);
}

function Link({ link }: { readonly link: Schema<"WhyLink"> }) {
	const isPerson = link.kind === "person" || parseRef(link.ref) === null;
	return (
		<li className={css.link}>
			<p className={css.head}>
				<span className={css.kind}>{link.kind}</span>
				{isPerson ? <SafeText text={link.summary} /> : <RefChip to={link.ref} />}
			</p>
			{!isPerson && (
				<p className={css.words}>
					<SafeText text={link.summary} escapes="strip" />
				</p>
			)}
			<p className={css.by}>
				{link.by !== undefined && !isPerson && (
					<>
						by <SafeText text={link.by} />
					</>
				)}
				{link.at !== undefined && (
					<>
						{" "}
						<Time at={link.at} />
					</>
				)}
			</p>
			{link.also !== undefined && link.also.length > 0 && (
				<p className={css.by}>
					Also caused by:{" "}
					{link.also.map((ref) => (
						<RefChip key={ref} to={ref} />
					))}
				</p>
			)}
		</li>
	);
}

/** Where the chain ends, and why there. */
function endOf({ end }: Schema<"Why">): string {
	return end === undefined ? "The chain ends at a person." : `The chain ends here: ${end}.`;
}

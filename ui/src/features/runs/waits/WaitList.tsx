/** The waits of a run as trees: a root cause, under it what waits because of it. */

import { Link } from "wouter";
import { paths } from "../../../app/paths";
import { cx } from "../../../components/cx";
import { SafeText } from "../../../components/SafeText";
import { StateWord } from "../../../components/StateWord";
import { Time } from "../../../components/Time";
import { formatRef } from "../../../model/refs";
import {
	isIdleWait,
	remedyOf,
	type Wait,
	type WaitTree,
	type WhyGraph,
	waitTrees,
	waitWords,
} from "../../../model/run-waits";
import type { Schema } from "../../../model/schema";
import { firstLine } from "../../../model/text-safety";
import { unknownWord } from "../../../model/unknown-word";
import { WaitingAgent } from "./WaitingAgent";
import css from "./WaitList.module.css";

type Run = Schema<"RunView">;

export function WaitList({ graph, run }: { readonly graph: WhyGraph; readonly run: Run }) {
	const trees = waitTrees(graph);
	const waiting = trees.filter(({ wait, because }) => !isIdleWait(wait) || because.length > 0);
	const idle = trees.filter((tree) => !waiting.includes(tree));
	return (
		<div className={css.page}>
			<Deadlocks graph={graph} run={run} />
			{waiting.length === 0 ? (
				<p role="status">{quietWords(run)}</p>
			) : (
				<ol className={css.trees} aria-label="Root causes first">
					{waiting.map((tree) => (
						<Tree key={tree.at} tree={tree} run={run} />
					))}
				</ol>
			)}
			{idle.length > 0 && (
				<section>
					<h2 className={css.heading}>Nothing to do</h2>
					<ul className={css.idle}>
						{idle.map(({ at, wait }) => (
							<li key={at}>
								<Who wait={wait} run={run} /> <IdleState wait={wait} run={run} />
							</li>
						))}
					</ul>
				</section>
			)}
		</div>
	);
}

function quietWords(run: Run): string {
	if (Object.keys(run.nodes).length === 0) return "The run has no agent: add one, and write to it.";
	return run.status === "completed"
		? "The run is completed: nobody waits for anything."
		: "Nobody waits for anything. Write to an agent, and its turn begins.";
}

/** An agent without input may have failed, which is worth more than that it has nothing to do. */
function IdleState({ wait, run }: { readonly wait: Wait; readonly run: Run }) {
	const node = wait.nodeId == null ? undefined : run.nodes[wait.nodeId];
	const isFailed = node?.status === "failed";
	return (
		<StateWord tone={isFailed ? "failed" : "neutral"} word={isFailed ? "failed" : "idle"}>
			{isFailed ? `${firstLine(node.summary, 120)}; write to it or retry its turn` : "nothing to do"} ·{" "}
			<Time at={wait.since} format="age" />
		</StateWord>
	);
}

function Tree({ tree, run }: { readonly tree: WaitTree; readonly run: Run }) {
	const { wait, isRoot, because } = tree;
	const isYours = wait.owner.kind === "person";
	return (
		<li className={cx(css.tree, isRoot && css.root, isRoot && isYours && css.yours)}>
			<p className={css.wait}>
				<Who wait={wait} run={run} />
				<StateWord
					tone={isYours ? "waiting" : wait.reason === "working" ? "running" : "neutral"}
					word={waitWords(wait)}
				>
					<Owner wait={wait} run={run} /> · <Time at={wait.since} format="age" />
					{wait.until != null && (
						<>
							{" "}
							· until <Time at={wait.until} />
						</>
					)}
				</StateWord>
				<Remedy wait={wait} run={run} />
			</p>
			{wait.paths != null && wait.paths.length > 0 && (
				<ul className={css.paths}>
					{wait.paths.map((path) => (
						<li key={path}>
							<code>
								<SafeText text={path} />
							</code>
						</li>
					))}
				</ul>
			)}
			{because.length > 0 && (
				<>
					<p className={css.soft}>Because of this:</p>
					<ol className={css.trees}>
						{because.map((each) => (
							<Tree key={each.at} tree={each} run={run} />
						))}
					</ol>
				</>
			)}
		</li>
	);
}

function Who({ wait, run }: { readonly wait: Wait; readonly run: Run }) {
	return wait.nodeId == null ? <strong>The run</strong> : <WaitingAgent id={wait.nodeId} run={run} />;
}

/** Who can end the wait. */
function Owner({ wait: { owner }, run }: { readonly wait: Wait; readonly run: Run }) {
	switch (owner.kind) {
		case "person":
			return <>you can end it</>;
		case "node":
			if (owner.nodeId == null) return <>another agent ends it</>;
			return (
				<>
					from <WaitingAgent id={owner.nodeId} run={run} />
				</>
			);
		case "program":
			return (
				<>
					its program <SafeText text={firstLine(owner.program ?? "", 60)} /> is at work
				</>
			);
		case "daemon":
			return <>the server ends it by itself</>;
		default:
			return <>ended by: {unknownWord(owner.kind)}</>;
	}
}

function Remedy({ wait, run }: { readonly wait: Wait; readonly run: Run }) {
	switch (remedyOf(wait)) {
		case "inbox": {
			const item = wait.approvalId == null ? null : formatRef({ kind: "approval", id: wait.approvalId });
			return <Link href={paths.inbox({ run: run.id, item })}>Answer in the inbox</Link>;
		}
		case "resume":
			return <Link href={paths.run(run.id)}>Resume the run</Link>;
		case "chat":
			return <Link href={paths.run(run.id, { agent: wait.nodeId ?? null })}>Write to it</Link>;
		case "add-agent":
			return <Link href={paths.run(run.id)}>Add an agent</Link>;
		case null:
			return null;
	}
}

function Deadlocks({ graph, run }: { readonly graph: WhyGraph; readonly run: Run }) {
	if (graph.deadlocks.length === 0) return null;
	return (
		<div role="alert" className={css.deadlock}>
			{graph.deadlocks.map((circle) => (
				<p key={circle.join(" ")}>
					<strong>Deadlock:</strong> these agents wait for each other’s replies, and none can go on:{" "}
					{[...circle, ...circle.slice(0, 1)].map((id, at) => (
						<span key={`${id} ${at === circle.length ? "again" : "first"}`}>
							{at > 0 && " → "}
							<WaitingAgent id={id} run={run} />
						</span>
					))}
					. Write to one of them to break the circle.
				</p>
			))}
		</div>
	);
}

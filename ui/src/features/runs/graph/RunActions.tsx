/** What can be done with a run: pause, resume, complete, its modes, and the rarer things in a menu. */

import { useState } from "react";
import { Link } from "wouter";
import { useActionBlock } from "../../../api/connection";
import { paths } from "../../../app/paths";
import { Button, IconButton } from "../../../components/Button";
import { ErrorNote } from "../../../components/ErrorNote";
import { Menu } from "../../../components/Menu";
import { toast } from "../../../components/toasts";
import type { RunFields } from "../../../model/run";
import type { Schema } from "../../../model/schema";
import { DeleteRunDialog } from "./DeleteDialogs";
import { RunSettingsDialog } from "./RunSettingsDialog";
import css from "./RunView.module.css";
import { useRun } from "./run-source";
import { useRunChange } from "./useRunActions";

export interface RunActionsProps {
	readonly runId: string;
	readonly onAdd: () => void;
}

export function RunActions({ runId, onAdd }: RunActionsProps) {
	const run = useRun((state) => state.run);
	const [dialog, setDialog] = useState<"delete" | "settings" | null>(null);
	const block = useActionBlock();
	const change = useRunChange(runId);
	if (run === null) return null;
	const set = (body: Schema<"ChangeRun">, done: string) => change.mutate(body, { onSuccess: () => toast(done) });
	const wanted = change.isPending ? change.variables?.status : undefined;
	const isOver = run.status === "completed" || run.status === "failed";
	return (
		<>
			<Link href={paths.why(runId)} className={css.why}>
				Why is nothing happening?
			</Link>
			<ModeMenu run={run} blocked={block} onChange={set} />
			{run.status === "running" || run.status === "queued" ? (
				<Button
					icon="pause"
					blocked={block}
					isPending={wanted === "paused"}
					onClick={() => set({ status: "paused" }, "Paused: open turns finish, no other begins")}
				>
					Pause
				</Button>
			) : (
				<Button
					icon="play"
					look="primary"
					blocked={block}
					isPending={wanted === "running"}
					onClick={() => set({ status: "running" }, isOver ? "The run is open again" : "The run goes on")}
				>
					{isOver ? "Reopen" : run.pausedReason === "stall" ? "Continue" : "Resume"}
				</Button>
			)}
			{!isOver && (
				<Button
					icon="check"
					blocked={block}
					isPending={wanted === "completed"}
					onClick={() => set({ status: "completed" }, "Completed. Reopen it or write to an agent to go on")}
				>
					Complete
				</Button>
			)}
			<Button icon="plus" blocked={block} onClick={onAdd}>
				Add agent
			</Button>
			<Menu
				trigger={<IconButton label="More actions of the run" icon="more" />}
				actions={[
					{
						label: "Pause and interrupt open turns",
						blocked: block ?? (run.status === "running" ? null : "It does not run"),
						onSelect: () => set({ status: "paused", interrupt: true }, "Paused, and open turns are interrupted"),
					},
					{ label: "Change its settings…", blocked: block, onSelect: () => setDialog("settings") },
					{ label: "Export as a file", blocked: block, onSelect: () => download(runId, "export") },
					{ label: "Record as a script", blocked: block, onSelect: () => download(runId, "record") },
					{ label: "Delete run…", blocked: block, isDanger: true, onSelect: () => setDialog("delete") },
				]}
			/>
			{change.error !== null && (
				<div className={css.wide}>
					<ErrorNote context="The run was not changed." error={change.error} />
				</div>
			)}
			{dialog === "settings" && <RunSettingsDialog run={run} onClose={() => setDialog(null)} />}
			{dialog === "delete" && <DeleteRunDialog runId={runId} onClose={() => setDialog(null)} />}
		</>
	);
}

/** The browser saves it: a file may be larger than what a page should hold. */
function download(runId: string, what: "export" | "record"): void {
	const link = document.createElement("a");
	link.href = `/api/runs/${encodeURIComponent(runId)}/${what}`;
	link.download = what === "export" ? `run-${runId.slice(0, 8)}.zip` : `run-${runId.slice(0, 8)}.toml`;
	link.click();
}

interface ModeMenuProps {
	readonly run: RunFields;
	readonly blocked: string | null;
	readonly onChange: (body: Schema<"ChangeRun">, done: string) => void;
}

function ModeMenu({ run, blocked, onChange }: ModeMenuProps) {
	const isAuto = run.mode === "AUTO";
	const isPlanning = run.globalMode === "PLANNING";
	const words = `${isAuto ? "auto" : "interactive"} · ${isPlanning ? "planning" : "implementation"}`;
	return (
		<Menu
			trigger={
				<Button icon="system" aria-label={`Mode: ${words}`}>
					{words}
				</Button>
			}
			actions={[
				isAuto
					? {
							label: "Interactive: prompt nobody without input",
							blocked,
							onSelect: () => onChange({ mode: "INTERACTIVE" }, "Interactive from the next turn on"),
						}
					: {
							label: "Auto: prompt the lead until the goal is reached",
							blocked,
							onSelect: () => onChange({ mode: "AUTO" }, "Auto from the next turn on"),
						},
				isPlanning
					? {
							label: "Implementation: agents write what their role allows",
							blocked,
							onSelect: () => onChange({ globalMode: "IMPLEMENTATION" }, "Implementation from the next turn on"),
						}
					: {
							label: "Planning: agents write documents only",
							blocked,
							onSelect: () => onChange({ globalMode: "PLANNING" }, "Planning from the next turn on"),
						},
			]}
		/>
	);
}

/** A file of a run beside the page: its text as text, and a link to its bytes. */

import { useMemo } from "react";
import { DiffView } from "../../../components/DiffView";
import { Drawer } from "../../../components/Drawer";
import { ErrorNote } from "../../../components/ErrorNote";
import { JsonView } from "../../../components/JsonView";
import { RefChip } from "../../../components/refs/RefChip";
import { SafeText } from "../../../components/SafeText";
import { Skeleton } from "../../../components/Skeleton";
import { Time } from "../../../components/Time";
import { parseDiff } from "../../../model/diff";
import { formatBytes } from "../../../model/quantity";
import type { Artifact } from "../../../model/run";
import css from "./ArtifactDrawer.module.css";
import { artifactUrl, useArtifactText } from "./artifacts";
import { LongText } from "./LongText";

export interface ArtifactDrawerProps {
	/** Null if the run has none of this id. */
	readonly artifact: Artifact | null;
	readonly id: string;
	readonly onClose: () => void;
}

export function ArtifactDrawer({ artifact, id, onClose }: ArtifactDrawerProps) {
	if (artifact === null) {
		return (
			<Drawer title="Not found" onClose={onClose}>
				<p>
					The run has no file <SafeText text={id} />. It may have been deleted.
				</p>
			</Drawer>
		);
	}
	return (
		<Drawer key={artifact.id} title={<SafeText text={artifact.name} />} onClose={onClose}>
			<div className={css.body}>
				<p className={css.facts}>
					<RefChip to={{ kind: "artifact", id: artifact.id }} name={artifact.kind} />
					<span>{formatBytes(artifact.bytes)}</span>
					<Time at={artifact.createdAt} />
					<a href={artifactUrl(artifact)} download={artifact.name}>
						Download
					</a>
				</p>
				<ArtifactContent artifact={artifact} />
			</div>
		</Drawer>
	);
}

function ArtifactContent({ artifact }: { readonly artifact: Artifact }) {
	const { data, error, isPending, refetch } = useArtifactText(artifact);
	if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />;
	if (isPending) return <Skeleton lines={8} />;
	if (data === "") return <p>The file is empty.{artifact.kind === "diff" && " The turn changed nothing."}</p>;
	if (artifact.kind === "diff") return <DiffContent artifact={artifact} text={data} />;
	const json = artifact.name.endsWith(".json") ? readJson(data) : undefined;
	return json === undefined ? <LongText text={data} /> : <JsonView value={json} label={artifact.name} />;
}

function DiffContent({ artifact, text }: { readonly artifact: Artifact; readonly text: string }) {
	const files = useMemo(() => parseDiff(text), [text]);
	return (
		<div className={css.diff}>
			<DiffView files={files} lineRef={(path, line) => `artifact://${artifact.id}#${path}:${line}`} />
		</div>
	);
}

function readJson(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

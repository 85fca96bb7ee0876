import { useQuery } from "@tanstack/react-query";
import { isNotFound } from "../../api/errors";
import { paths } from "../../app/paths";
import { CopyButton } from "../../components/CopyButton";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNote } from "../../components/ErrorNote";
import { Page } from "../../components/Page";
import { Skeleton } from "../../components/Skeleton";
import type { ScreenProps } from "../../components/screen";
import { Segments } from "../../components/Tabs";
import { useQueryParam } from "../../components/useQueryParam";
import { formatBytes } from "../../model/quantity";
import { BlobView } from "./BlobView";
import { type BlobHead, blobContents, blobPath, blobQuery } from "./blob";
import css from "./History.module.css";

/** Bytes by their hash, in the form that tells most: JSON, text, an image, or hex. */
export default function BlobScreen({ params }: ScreenProps<"hash">) {
	const { hash } = params;
	const { data, error, isPending, refetch } = useQuery(blobQuery(hash));
	const isMissing = isNotFound(error);
	return (
		<Page
			title={`Blob ${hash.slice(0, 8)}`}
			crumbs={[{ label: "History", href: paths.histories() }]}
			aside={<CopyButton text={`blob:${hash}`} label="Copy the ref" />}
			actions={
				data !== undefined && (
					<a href={blobPath(hash)} download={`${hash.slice(0, 16)}.bin`}>
						{`Download ${formatBytes(data.length)}`}
					</a>
				)
			}
		>
			{isPending && <Skeleton lines={8} />}
			{isMissing && (
				<EmptyState title="Not found">
					No blob has this hash. A blob is there as long as a turn refers to it.
				</EmptyState>
			)}
			{error !== null && !isMissing && <ErrorNote error={error} onRetry={() => void refetch()} />}
			{data !== undefined && <BlobContentView hash={hash} head={data} />}
		</Page>
	);
}

function BlobContentView({ hash, head }: { readonly hash: string; readonly head: BlobHead }) {
	const [as, setAs] = useQueryParam("as");
	const contents = blobContents(head);
	const [best] = contents;
	const shown = contents.find(({ form }) => form === as) ?? best;
	if (shown === undefined) return null;
	const options = contents.map(({ form }) => ({ value: form, label: form === "json" ? "JSON" : form }));
	return (
		<>
			<div className={css.tools}>
				<Segments label="Form" value={shown.form} options={options} onChange={(next) => setAs(next)} />
				<span className={css.soft}>{formatBytes(head.length)}</span>
				<code className={css.soft}>{hash}</code>
			</div>
			{head.bytes.length < head.length && (
				<p className={css.warning}>{`Only the first ${formatBytes(head.bytes.length)} are shown.`}</p>
			)}
			<div className={css.part}>
				<BlobView hash={hash} head={head} content={shown} />
			</div>
		</>
	);
}

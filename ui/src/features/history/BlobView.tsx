/** A blob in one form. */

import { useEffect, useState } from "react";
import { HexView } from "../../components/HexView";
import { JsonView } from "../../components/JsonView";
import { LongText } from "../../components/LongText";
import type { BlobContent, BlobHead } from "./blob";
import css from "./History.module.css";

export interface BlobViewProps {
	readonly hash: string;
	readonly head: BlobHead;
	readonly content: BlobContent;
}

export function BlobView({ hash, head, content }: BlobViewProps) {
	switch (content.form) {
		case "text":
			return (
				<div className={css.text}>
					<LongText text={content.text === "" ? "no bytes" : content.text} />
				</div>
			);
		case "json":
			return <JsonView value={content.value} label="Blob" />;
		case "image":
			return <BlobImage key={hash} bytes={head.bytes} type={content.type} hash={hash} />;
		case "hex":
			return <HexView bytes={head.bytes} label="Bytes of the blob" />;
	}
}

interface BlobImageProps {
	readonly bytes: Uint8Array<ArrayBuffer>;
	readonly type: string;
	readonly hash: string;
}

/** From memory, with the type that its bytes have: the server sends every blob as bytes of no type. */
function BlobImage({ bytes, type, hash }: BlobImageProps) {
	const [url, setUrl] = useState<string | null>(null);
	const [isBroken, setBroken] = useState(false);
	useEffect(() => {
		const made = URL.createObjectURL(new Blob([bytes], { type }));
		setUrl(made);
		return () => URL.revokeObjectURL(made);
	}, [bytes, type]);
	if (url === null) return null;
	if (isBroken) return <p>The browser cannot show this image. Hex shows its bytes.</p>;
	return (
		<img
			src={url}
			alt={`The content of blob ${hash.slice(0, 8)}`}
			className={css.image}
			onError={() => setBroken(true)}
		/>
	);
}

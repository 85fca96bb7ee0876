/** Markdown without HTML and without images: links open elsewhere and say where they lead. */

import { useMemo } from "react";
import { type Block, type Inline, isSafeLink, type ListItem, parseMarkdown } from "../model/markdown";
import css from "./Markdown.module.css";
import { MachineText, SafeText } from "./SafeText";

/** Longer texts are shown as they were written; reading them would freeze the page. */
const CHARS_MAX = 200_000;

export function Markdown({ text }: { readonly text: string }) {
	const blocks = useMemo(() => (text.length > CHARS_MAX ? null : parseMarkdown(text)), [text]);
	if (blocks === null) return <MachineText text={text} />;
	return (
		<div className={css.markdown}>
			<Blocks blocks={blocks} />
		</div>
	);
}

function Blocks({ blocks }: { readonly blocks: readonly Block[] }) {
	return blocks.map((block, at) => (
		// biome-ignore lint/suspicious/noArrayIndexKey: blocks have no state and no other name.
		<BlockView key={at} block={block} />
	));
}

function BlockView({ block }: { readonly block: Block }) {
	switch (block.kind) {
		case "heading":
			return (
				// The page's own headings come first in the outline, so these are no headings of the document.
				<p className={css.heading} data-level={block.level}>
					<Words words={block.words} />
				</p>
			);
		case "paragraph":
			return (
				<p>
					<Words words={block.words} />
				</p>
			);
		case "code":
			return (
				<div className={css.code}>
					<MachineText text={block.text} />
				</div>
			);
		case "quote":
			return (
				<blockquote className={css.quote}>
					<Blocks blocks={block.blocks} />
				</blockquote>
			);
		case "list":
			return <ListView start={block.start} items={block.items} />;
		case "table":
			return <TableView head={block.head} rows={block.rows} />;
		case "rule":
			return <hr />;
	}
}

function ListView({ start, items }: { readonly start: number | null; readonly items: readonly ListItem[] }) {
	const shown = items.map((item, at) => (
		// biome-ignore lint/suspicious/noArrayIndexKey: items have no state and no other name.
		<li key={at}>
			{item.isDone !== null && <span className={css.task}>{item.isDone ? "☑ " : "☐ "}</span>}
			<Blocks blocks={item.blocks} />
		</li>
	));
	return start === null ? (
		<ul className={css.bullets}>{shown}</ul>
	) : (
		<ol start={start} className={css.numbers}>
			{shown}
		</ol>
	);
}

function TableView({ head, rows }: Pick<Extract<Block, { kind: "table" }>, "head" | "rows">) {
	return (
		<table className={css.table}>
			<thead>
				<tr>
					{head.map((cell, at) => (
						// biome-ignore lint/suspicious/noArrayIndexKey: cells have no state and no other name.
						<th key={at} scope="col">
							<Words words={cell} />
						</th>
					))}
				</tr>
			</thead>
			<tbody>
				{rows.map((row, at) => (
					// biome-ignore lint/suspicious/noArrayIndexKey: rows have no state and no other name.
					<tr key={at}>
						{row.map((cell, column) => (
							// biome-ignore lint/suspicious/noArrayIndexKey: cells have no state and no other name.
							<td key={column}>
								<Words words={cell} />
							</td>
						))}
					</tr>
				))}
			</tbody>
		</table>
	);
}

function Words({ words }: { readonly words: readonly Inline[] }) {
	return words.map((word, at) => (
		// biome-ignore lint/suspicious/noArrayIndexKey: words have no state and no other name.
		<Word key={at} word={word} />
	));
}

function Word({ word }: { readonly word: Inline }) {
	switch (word.kind) {
		case "text":
			return <SafeText text={word.text} />;
		case "code":
			return (
				<code className={css.inlineCode}>
					<SafeText text={word.text} />
				</code>
			);
		case "strong":
			return (
				<strong>
					<Words words={word.words} />
				</strong>
			);
		case "emphasis":
			return (
				<em>
					<Words words={word.words} />
				</em>
			);
		case "struck":
			return (
				<s>
					<Words words={word.words} />
				</s>
			);
		case "link":
			return (
				<OutsideLink href={word.href}>
					<Words words={word.words} />
				</OutsideLink>
			);
		case "image":
			return <ImageText alt={word.alt} src={word.src} />;
	}
}

function OutsideLink({ href, children }: { readonly href: string; readonly children: React.ReactNode }) {
	return (
		<a href={href} title={href} target="_blank" rel="noreferrer noopener">
			{children}
		</a>
	);
}

/** Loading an image would tell its server that somebody reads this. */
function ImageText({ alt, src }: { readonly alt: string; readonly src: string }) {
	const name = <SafeText text={alt === "" ? src : alt} />;
	return <span>[image: {isSafeLink(src) ? <OutsideLink href={src}>{name}</OutsideLink> : name}]</span>;
}

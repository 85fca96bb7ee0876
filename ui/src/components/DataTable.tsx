/**
 * A table of things. Columns go in a stated order when it gets narrow, so it never scrolls sideways.
 *
 * A row leads to its thing: the first column is the link, and a click anywhere in the row follows it.
 */

import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { navigate } from "wouter/use-browser-location";
import { formatRef, type Ref } from "../model/refs";
import { columnWidths, fittingColumns, type SizedColumn } from "./columns";
import { cx } from "./cx";
import css from "./DataTable.module.css";
import { listBindings, useKeys } from "./keys";

export interface Column<Row> extends SizedColumn {
	readonly id: string;
	readonly header: string;
	readonly cell: (row: Row) => ReactNode;
	readonly align?: "start" | "end";
	/** How much of the free width it gets; 0 unless given. */
	readonly grow?: number;
}

export interface DataTableProps<Row> {
	/** What the table lists. */
	readonly label: string;
	readonly columns: readonly Column<Row>[];
	readonly rows: readonly Row[];
	readonly rowKey: (row: Row) => string;
	readonly rowHref?: (row: Row) => string;
	/** The thing of a row, for the keys that act on the focused thing. */
	readonly rowRef?: (row: Row) => Ref;
}

export function DataTable<Row>({ label, columns, rows, rowKey, rowHref, rowRef }: DataTableProps<Row>) {
	const [width, setWidth] = useState(Number.POSITIVE_INFINITY);
	const frame = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		const element = frame.current;
		if (element === null || typeof ResizeObserver === "undefined") return;
		const observer = new ResizeObserver(([entry]) => entry !== undefined && setWidth(entry.contentRect.width));
		observer.observe(element);
		if (element.clientWidth > 0) setWidth(element.clientWidth);
		return () => observer.disconnect();
	}, []);
	useKeys(
		label,
		listBindings(() => frame.current),
	);
	const shown = fittingColumns(columns, width);
	const widths = columnWidths(shown, width);
	return (
		<div ref={frame} className={css.frame}>
			<table aria-label={label} className={css.table}>
				<colgroup>
					{shown.map((column, at) => {
						const columnWidth = widths[at] ?? null;
						return <col key={column.id} style={columnWidth === null ? undefined : { width: columnWidth }} />;
					})}
				</colgroup>
				<thead>
					<tr>
						{shown.map((column) => (
							<th key={column.id} scope="col" className={cx(column.align === "end" && css.end)}>
								{column.header}
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{rows.map((row) => (
						<TableRow key={rowKey(row)} row={row} columns={shown} href={rowHref?.(row)} to={rowRef?.(row)} />
					))}
				</tbody>
			</table>
		</div>
	);
}

interface TableRowProps<Row> {
	readonly row: Row;
	readonly columns: readonly Column<Row>[];
	readonly href: string | undefined;
	readonly to: Ref | undefined;
}

function TableRow<Row>({ row, columns, href, to }: TableRowProps<Row>) {
	return (
		// For the mouse only: the link in the first cell does the same for the keyboard.
		<tr
			className={cx(href !== undefined && css.linked)}
			onClick={(event) => {
				const isControl =
					event.target instanceof Element && event.target.closest("a, button, input, select, label") !== null;
				const isSelecting = (getSelection()?.toString() ?? "") !== "";
				if (href !== undefined && !isControl && !isSelecting) navigate(href);
			}}
		>
			{columns.map((column, at) => (
				<td key={column.id} className={cx(column.align === "end" && css.end)}>
					{at === 0 && href !== undefined ? (
						<Link href={href} data-item="" data-ref={to === undefined ? undefined : formatRef(to)} className={css.link}>
							{column.cell(row)}
						</Link>
					) : (
						column.cell(row)
					)}
				</td>
			))}
		</tr>
	);
}

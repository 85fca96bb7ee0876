/** Which columns of a table fit. */

export interface SizedColumn {
	/** The least width in pixels at which the column still reads well. */
	readonly minWidth: number;
	/** The order in which columns go when the table gets narrow: 1 goes first. Without it the column always stays. */
	readonly drop?: number;
}

/** The columns that fit, in their order. */
export function fittingColumns<Column extends SizedColumn>(columns: readonly Column[], width: number): Column[] {
	const left = new Set(columns);
	const inOrder = columns
		.filter((column) => column.drop !== undefined)
		.toSorted((one, other) => (one.drop ?? 0) - (other.drop ?? 0));
	for (const column of inOrder) {
		const needed = [...left].reduce((sum, each) => sum + each.minWidth, 0);
		if (needed <= width) break;
		left.delete(column);
	}
	return columns.filter((column) => left.has(column));
}

/**
 * The widths of columns in CSS; null where a column takes what is left. In a window that is too narrow for all of them
 * they share it, or the growing one would have nothing.
 */
export function columnWidths(
	columns: readonly (SizedColumn & { readonly grow?: number })[],
	width: number,
): (string | null)[] {
	const needed = columns.reduce((sum, { minWidth }) => sum + minWidth, 0);
	if (needed > width) return columns.map(({ minWidth }) => `${(100 * minWidth) / needed}%`);
	return columns.map(({ minWidth, grow }) => (grow === undefined ? `${minWidth}px` : null));
}

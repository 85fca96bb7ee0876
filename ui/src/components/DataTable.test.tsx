import { fireEvent, screen } from "@testing-library/react";
import { beforeEach, expect, test } from "vitest";
import { renderInWindow } from "../../test/render";
import { DataTable } from "./DataTable";

beforeEach(() => history.replaceState(null, "", "/runs"));

const rows = [
	{ id: "1", title: "Fix", cost: 3 },
	{ id: "2", title: "Port", cost: 4 },
];

function Table() {
	return (
		<DataTable
			label="Runs"
			rows={rows}
			rowKey={(row) => row.id}
			rowHref={(row) => `/runs/${row.id}`}
			columns={[
				{ id: "title", header: "Run", minWidth: 100, cell: (row) => row.title },
				{
					id: "cost",
					header: "Cost",
					minWidth: 60,
					align: "end",
					cell: (row) => <button type="button">{row.cost}</button>,
				},
			]}
		/>
	);
}

test("a table has a name, headers, and a link in each row", () => {
	renderInWindow(<Table />);
	expect(screen.getByRole("table", { name: "Runs" })).toBeTruthy();
	expect(screen.getAllByRole("columnheader").map((header) => header.textContent)).toEqual(["Run", "Cost"]);
	expect(screen.getByRole("link", { name: "Port" }).getAttribute("href")).toBe("/runs/2");
});

test("a click in the row follows its link, a click on a control does not", () => {
	renderInWindow(<Table />);
	fireEvent.click(screen.getByRole("button", { name: "3" }));
	expect(location.pathname).toBe("/runs");
	fireEvent.click(screen.getAllByRole("cell")[3] as HTMLElement);
	expect(location.pathname).toBe("/runs/2");
});

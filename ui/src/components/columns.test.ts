import { expect, test } from "vitest";
import { columnWidths, fittingColumns } from "./columns";

const columns = [
	{ id: "title", minWidth: 200 },
	{ id: "phase", minWidth: 80, drop: 2 },
	{ id: "cost", minWidth: 80, drop: 1 },
	{ id: "state", minWidth: 120 },
];
const ids = (width: number) => fittingColumns(columns, width).map((column) => column.id);

test("columns go in the stated order and the others keep theirs", () => {
	expect(ids(480)).toEqual(["title", "phase", "cost", "state"]);
	expect(ids(479)).toEqual(["title", "phase", "state"]);
	expect(ids(399)).toEqual(["title", "state"]);
	expect(ids(10)).toEqual(["title", "state"]);
});

test("the growing column takes what the others leave, and its share where they leave too little", () => {
	const sized = [{ minWidth: 100 }, { minWidth: 150, grow: 1 }, { minWidth: 50 }];
	expect(columnWidths(sized, 300)).toEqual(["100px", null, "50px"]);
	expect(columnWidths(sized, 200)).toEqual([`${100 / 3}%`, "50%", `${50 / 3}%`]);
});

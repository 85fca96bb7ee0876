import type { UseQueryResult } from "@tanstack/react-query";
import { expect, test, vi } from "vitest";
import type { Ledger } from "../../model/ledger";
import type { Schema } from "../../model/schema";
import { joinTokens } from "./tokens-of-ledgers";

type Answer = UseQueryResult<readonly Schema<"Token">[]>;

const ledger = (world_id: string, label: string) =>
	({ world_id, operator_label: "Operator", persons: [{ person_id: "ANN", display_label: label }] }) as Ledger;
const token = (token_id: string, created_at: string) => ({ token_id, created_at, person_id: "ANN", write: true });
const read = (...data: ReturnType<typeof token>[]) => ({ data, error: null, isPending: false }) as unknown as Answer;
const ledgers = [ledger("a", "Ann of a"), ledger("b", "Ann of b")];

test("tokens of several ledgers are one list, newest first, each named as in its own ledger", () => {
	const first = read(token("1", "2026-11-18T10:00:00Z"), token("3", "2026-11-18T12:00:00Z"));
	const { tokens, isPending, failures } = joinTokens(ledgers, [first, read(token("2", "2026-11-18T11:00:00+00:00"))]);
	expect(tokens.map(({ token, name }) => `${token.token_id} ${name}`)).toEqual([
		"3 Ann of a",
		"2 Ann of b",
		"1 Ann of a",
	]);
	expect([isPending, failures]).toEqual([false, []]);
});

test("a ledger that cannot be read takes no other along, and can be read again", () => {
	const refetch = vi.fn();
	const failed = { data: undefined, error: new Error("broken"), isPending: false, refetch } as unknown as Answer;
	const pending = { data: undefined, error: null, isPending: true } as unknown as Answer;
	const { tokens, failures } = joinTokens(ledgers, [failed, read(token("2", "2026-11-18T11:00:00Z"))]);
	expect(tokens.map(({ token }) => token.token_id)).toEqual(["2"]);
	expect(failures.map(({ ledger, error }) => `${ledger.world_id}: ${error.message}`)).toEqual(["a: broken"]);
	failures[0]?.onRetry();
	expect(refetch).toHaveBeenCalledOnce();
	expect(joinTokens(ledgers, [pending, read()])).toEqual({ tokens: [], isPending: true, failures: [] });
});

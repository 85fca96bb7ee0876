/** Whose eyes a ledger screen has: part of its URL. */

import { useSearch } from "wouter";
import { navigate } from "wouter/use-browser-location";
import { type Eyes, eyesQuery, readEyes } from "../../model/ledger";

export function useEyes(): readonly [eyes: Eyes, setEyes: (eyes: Eyes) => void] {
	const params = new URLSearchParams(useSearch());
	const eyes = readEyes(params.get("as"), params.get("audit"));
	const setEyes = (next: Eyes) => navigate(hrefWithEyes(next));
	return [eyes, setEyes];
}

/** This page, seen by somebody else. */
export function hrefWithEyes(eyes: Eyes): string {
	const params = new URLSearchParams(location.search);
	params.delete("as");
	params.delete("audit");
	for (const [name, value] of Object.entries(eyesQuery(eyes))) params.set(name, value);
	const search = params.toString();
	return `${location.pathname}${search === "" ? "" : `?${search}`}`;
}

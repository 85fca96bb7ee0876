/** What is shown instead of everything while the server does not know this browser. */

import { useEffect } from "react";
import { SignIn } from "./SignIn";

export function SignedOutPage() {
	useReloadWhenKnown();
	return (
		<main>
			<SignIn next={location.pathname + location.search} />
		</main>
	);
}

/** The printed link is usually opened in another tab. When this one is looked at again, it goes on where it was. */
function useReloadWhenKnown(): void {
	useEffect(() => {
		const check = async () => {
			if (document.visibilityState === "hidden") return;
			const response = await fetch("/v1/stats", { cache: "no-store" }).catch(() => null);
			if (response?.ok) location.reload();
		};
		const onVisible = () => void check();
		document.addEventListener("visibilitychange", onVisible);
		addEventListener("focus", onVisible);
		return () => {
			document.removeEventListener("visibilitychange", onVisible);
			removeEventListener("focus", onVisible);
		};
	}, []);
}

import { SignIn } from "./SignIn";

/** `/signin?next=…`: a page of its own, for links that lead to it. */
export default function SignInScreen() {
	return <SignIn next={new URLSearchParams(location.search).get("next") ?? "/"} />;
}

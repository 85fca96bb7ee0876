import { cleanup } from "@testing-library/react";
import { afterEach } from "vitest";

// No test reaches a network. What a test expects to be asked, it answers with `answerRequests`.
globalThis.fetch = async () =>
	Response.json({ error: { code: "NotFound", message: "not part of the test" } }, { status: 404 });

afterEach(cleanup);

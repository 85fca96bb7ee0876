import { expect, test } from "vitest";
import { blobContents } from "./blob";

const bytes = (text: string) => new TextEncoder().encode(text);
const forms = (data: Uint8Array<ArrayBuffer>, length = data.length) =>
	blobContents({ bytes: data, length }).map(({ form }) => form);

test("a blob has the forms that its bytes have", () => {
	expect(forms(bytes('{"a":1}'))).toEqual(["json", "text", "hex"]);
	expect(forms(bytes("plain"))).toEqual(["text", "hex"]);
	expect(forms(new Uint8Array([0x81, 0xff]))).toEqual(["hex"]);
	expect(forms(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]))).toEqual(["image", "hex"]);
});

test("a beginning that ends inside a character is text, and never JSON", () => {
	expect(forms(bytes("[1,2]é").subarray(0, 6), 100)).toEqual(["text", "hex"]);
});

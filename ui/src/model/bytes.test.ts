import { expect, test } from "vitest";
import { bytesFromBase64, hexRow, imageType, jsonOfText, textOfBytes } from "./bytes";

const bytes = (text: string) => new TextEncoder().encode(text);

test("base64 becomes its bytes", () => {
	expect([...bytesFromBase64("gQGiaGk=")]).toEqual([0x81, 1, 0xa2, 0x68, 0x69]);
});

test("a row of hex keeps its width, also at the end", () => {
	expect(hexRow(bytes("0123456789abcdef\n!"), 1, 16)).toEqual({
		offset: "00000010",
		hex: "0a 21".padEnd(47),
		text: "·!",
	});
});

test("images are known by their first bytes, and SVG is text", () => {
	expect(imageType(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0]))).toBe("image/png");
	expect(imageType(bytes("RIFF....WEBPVP8 "))).toBe("image/webp");
	expect(imageType(bytes("<svg onload=alert(1)>"))).toBeNull();
	expect(imageType(new Uint8Array())).toBeNull();
});

test("text is UTF-8 without NUL", () => {
	expect(textOfBytes(bytes("grüße"))).toBe("grüße");
	expect(textOfBytes(new Uint8Array([0xff, 0xfe]))).toBeNull();
	expect(textOfBytes(bytes("a\0b"))).toBeNull();
});

test("only objects and lists count as JSON", () => {
	expect(jsonOfText(' {"a":1}')).toEqual({ a: 1 });
	expect(jsonOfText("12")).toBeUndefined();
	expect(jsonOfText("{broken")).toBeUndefined();
});

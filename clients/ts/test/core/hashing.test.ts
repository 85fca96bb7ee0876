/** BLAKE3 and zstd against independent implementations and hostile input. */

import { blake3 as independent } from "@noble/hashes/blake3.js";
import { describe, expect, it } from "vitest";
import { blake3 } from "../../src/core/blake3.js";
import { blobHash, hashOf, verifyHash } from "../../src/core/blob-hash.js";
import { HashMismatchError, PayloadError } from "../../src/core/errors.js";
import { decompressZstd } from "../../src/core/zstd.js";

function input(length: number): Uint8Array {
	return Uint8Array.from({ length }, (_, index) => index % 251);
}

/** Lengths around the borders of blocks, chunks and subtrees. */
function lengths(): number[] {
	const borders = [0, 64, 128, 1024, 2048, 3072, 4096, 5120, 7168, 8192, 16_384, 31 * 1024, 65_536, 102_400];
	const around = borders.flatMap((border) => [border - 1, border, border + 1]);
	return around.filter((length) => length >= 0);
}

describe("blake3", () => {
	it("is what an independent implementation says, at every border", () => {
		for (const length of lengths()) {
			const bytes = input(length);
			expect(Buffer.compare(blake3(bytes), independent(bytes)), `length ${length}`).toBe(0);
		}
	});

	it("does not depend on where in a buffer the bytes lie", () => {
		const buffer = new Uint8Array(5000);
		buffer.set(input(3000), 17);
		expect(hashOf(buffer.subarray(17, 3017))).toBe(hashOf(input(3000)));
	});

	it("has the published hash of nothing, and of 102400 bytes", () => {
		expect(hashOf(new Uint8Array(0))).toBe("af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
		expect(hashOf(input(102_400))).toBe("bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085");
	});

	it("tells bytes from other bytes", () => {
		const hash = hashOf(input(100));
		verifyHash(hash, input(100));
		expect(() => verifyHash(hash, input(101))).toThrow(HashMismatchError);
	});

	it.each(["", "AF13", "g".repeat(64), "a".repeat(63), "A".repeat(64)])("has no name %j", (text) => {
		expect(() => blobHash(text)).toThrow(TypeError);
	});
});

describe("zstd", () => {
	/** "hello hello …" as one raw block, with and without a window of its own. */
	const content = Buffer.from("hello hello hello");
	const block = Buffer.concat([Buffer.from([(content.length << 3) | 1, 0, 0]), content]);
	const single = Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x20, content.length]), block]);
	const windowed = (descriptor: number) => Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, descriptor]), block]);

	it.each([
		["a frame that knows its size", single],
		["a frame with a window of 1 KiB", windowed(0)],
		["a frame with a window of 8 MiB", windowed(13 << 3)],
	])("reads %s", (_name, frame) => {
		expect(Buffer.from(decompressZstd(frame, content.length)).equals(content)).toBe(true);
	});

	it.each([
		["that gives fewer bytes than declared", single, content.length + 1],
		["that gives more bytes than declared", windowed(0), content.length - 1],
		["that wants a window of 16 MiB", windowed(14 << 3), content.length],
		["that wants a window of terabytes", windowed(0xff), content.length],
		["that declares 2^62 bytes", Buffer.from("28b52ffde0000000000000004001", "hex"), 10],
		["that is cut in its header", single.subarray(0, 5), content.length],
		["that is cut in its block", single.subarray(0, 12), content.length],
		["that is none", Buffer.from("not zstd at all"), 10],
		["that is empty", Buffer.alloc(0), 10],
	])("refuses a frame %s", (_name, frame, length) => {
		expect(() => decompressZstd(frame, length)).toThrow(PayloadError);
	});

	it("spends no memory on a payload that claims gigabytes", () => {
		expect(() => decompressZstd(single, 2 ** 32 - 1)).toThrow("over the limit");
	});
});

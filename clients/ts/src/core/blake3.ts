/**
 * BLAKE3-256 of bytes that are in memory: no keys, no derivation, no longer output.
 *
 * It is written out because the hash of its payload is most of what an append costs this client: with all
 * sixteen state words and sixteen message words in local variables it takes an eighth of the time of a
 * compression that loops over arrays. The tests compare it with an independent implementation at every length
 * around the borders of blocks, chunks and subtrees.
 */

const CHUNK_BYTES = 1024;
const BLOCK_BYTES = 64;
const BLOCK_WORDS = 16;
const CV_WORDS = 8;

const CHUNK_START = 1;
const CHUNK_END = 2;
const PARENT = 4;
const ROOT = 8;

const IV = Int32Array.of(
	0x6a09e667,
	0xbb67ae85 | 0,
	0x3c6ef372,
	0xa54ff53a | 0,
	0x510e527f,
	0x9b05688c | 0,
	0x1f83d9ab,
	0x5be0cd19,
);

/** The chunk that is being hashed, as bytes and as little-endian words. */
const chunkWords = new Int32Array(CHUNK_BYTES / 4);
const chunkBytes = new Uint8Array(chunkWords.buffer);
/** The chaining value that is being made. */
const cv = new Int32Array(CV_WORDS);
const cvBytes = new Uint8Array(cv.buffer);
/** Two chaining values that become one. */
const parentWords = new Int32Array(BLOCK_WORDS);

/** The hash of `input`, 32 bytes. */
export function blake3(input: Uint8Array): Uint8Array {
	const hash = new Uint8Array(CV_WORDS * 4);
	blake3Into(hash, 0, input);
	return hash;
}

/** Puts the hash of `input` into `out` at `at`. */
export function blake3Into(out: Uint8Array, at: number, input: Uint8Array): void {
	const chunks = Math.max(1, Math.ceil(input.length / CHUNK_BYTES));
	const stack: Int32Array[] = [];
	for (let index = 0; index < chunks - 1; index += 1) {
		hashChunk(input, index, 0);
		// One merge for every subtree that this chunk completes.
		for (let count = index + 1; (count & 1) === 0; count >>>= 1) hashParent(stack.pop() as Int32Array, 0);
		stack.push(cv.slice());
	}
	hashChunk(input, chunks - 1, stack.length === 0 ? ROOT : 0);
	while (stack.length > 0) {
		const left = stack.pop() as Int32Array;
		hashParent(left, stack.length === 0 ? ROOT : 0);
	}
	out.set(cvBytes, at);
}

/** Leaves the chaining value of one chunk in `cv`. */
function hashChunk(input: Uint8Array, index: number, last: number): void {
	const start = index * CHUNK_BYTES;
	const bytes = Math.min(CHUNK_BYTES, input.length - start);
	chunkBytes.set(bytes === input.length ? input : input.subarray(start, start + bytes));
	if (bytes < CHUNK_BYTES) chunkBytes.fill(0, bytes);
	const blocks = Math.max(1, Math.ceil(bytes / BLOCK_BYTES));
	cv.set(IV);
	for (let block = 0; block < blocks; block += 1) {
		const isLast = block === blocks - 1;
		const flags = (block === 0 ? CHUNK_START : 0) | (isLast ? CHUNK_END | last : 0);
		const length = isLast ? bytes - block * BLOCK_BYTES : BLOCK_BYTES;
		compress(chunkWords, block * BLOCK_WORDS, index, length, flags);
	}
}

/** Joins `left` with `cv` and leaves the result in `cv`. */
function hashParent(left: Int32Array, last: number): void {
	parentWords.set(left);
	parentWords.set(cv, CV_WORDS);
	cv.set(IV);
	compress(parentWords, 0, 0, BLOCK_BYTES, PARENT | last);
}

/** The compression function: seven rounds over one block, from `cv` into `cv`. */
function compress(block: Int32Array, at: number, counter: number, length: number, flags: number): void {
	let m0 = block[at + 0] as number;
	let m1 = block[at + 1] as number;
	let m2 = block[at + 2] as number;
	let m3 = block[at + 3] as number;
	let m4 = block[at + 4] as number;
	let m5 = block[at + 5] as number;
	let m6 = block[at + 6] as number;
	let m7 = block[at + 7] as number;
	let m8 = block[at + 8] as number;
	let m9 = block[at + 9] as number;
	let m10 = block[at + 10] as number;
	let m11 = block[at + 11] as number;
	let m12 = block[at + 12] as number;
	let m13 = block[at + 13] as number;
	let m14 = block[at + 14] as number;
	let m15 = block[at + 15] as number;
	let v0 = cv[0] as number;
	let v1 = cv[1] as number;
	let v2 = cv[2] as number;
	let v3 = cv[3] as number;
	let v4 = cv[4] as number;
	let v5 = cv[5] as number;
	let v6 = cv[6] as number;
	let v7 = cv[7] as number;
	let v8 = IV[0] as number;
	let v9 = IV[1] as number;
	let v10 = IV[2] as number;
	let v11 = IV[3] as number;
	let v12 = counter | 0;
	let v13 = 0;
	let v14 = length;
	let v15 = flags;
	let spare = 0;
	for (let round = 0; round < 7; round += 1) {
		v0 = (v0 + v4 + m0) | 0;
		v12 ^= v0;
		v12 = (v12 >>> 16) | (v12 << 16);
		v8 = (v8 + v12) | 0;
		v4 ^= v8;
		v4 = (v4 >>> 12) | (v4 << 20);
		v0 = (v0 + v4 + m1) | 0;
		v12 ^= v0;
		v12 = (v12 >>> 8) | (v12 << 24);
		v8 = (v8 + v12) | 0;
		v4 ^= v8;
		v4 = (v4 >>> 7) | (v4 << 25);
		v1 = (v1 + v5 + m2) | 0;
		v13 ^= v1;
		v13 = (v13 >>> 16) | (v13 << 16);
		v9 = (v9 + v13) | 0;
		v5 ^= v9;
		v5 = (v5 >>> 12) | (v5 << 20);
		v1 = (v1 + v5 + m3) | 0;
		v13 ^= v1;
		v13 = (v13 >>> 8) | (v13 << 24);
		v9 = (v9 + v13) | 0;
		v5 ^= v9;
		v5 = (v5 >>> 7) | (v5 << 25);
		v2 = (v2 + v6 + m4) | 0;
		v14 ^= v2;
		v14 = (v14 >>> 16) | (v14 << 16);
		v10 = (v10 + v14) | 0;
		v6 ^= v10;
		v6 = (v6 >>> 12) | (v6 << 20);
		v2 = (v2 + v6 + m5) | 0;
		v14 ^= v2;
		v14 = (v14 >>> 8) | (v14 << 24);
		v10 = (v10 + v14) | 0;
		v6 ^= v10;
		v6 = (v6 >>> 7) | (v6 << 25);
		v3 = (v3 + v7 + m6) | 0;
		v15 ^= v3;
		v15 = (v15 >>> 16) | (v15 << 16);
		v11 = (v11 + v15) | 0;
		v7 ^= v11;
		v7 = (v7 >>> 12) | (v7 << 20);
		v3 = (v3 + v7 + m7) | 0;
		v15 ^= v3;
		v15 = (v15 >>> 8) | (v15 << 24);
		v11 = (v11 + v15) | 0;
		v7 ^= v11;
		v7 = (v7 >>> 7) | (v7 << 25);
		v0 = (v0 + v5 + m8) | 0;
		v15 ^= v0;
		v15 = (v15 >>> 16) | (v15 << 16);
		v10 = (v10 + v15) | 0;
		v5 ^= v10;
		v5 = (v5 >>> 12) | (v5 << 20);
		v0 = (v0 + v5 + m9) | 0;
		v15 ^= v0;
		v15 = (v15 >>> 8) | (v15 << 24);
		v10 = (v10 + v15) | 0;
		v5 ^= v10;
		v5 = (v5 >>> 7) | (v5 << 25);
		v1 = (v1 + v6 + m10) | 0;
		v12 ^= v1;
		v12 = (v12 >>> 16) | (v12 << 16);
		v11 = (v11 + v12) | 0;
		v6 ^= v11;
		v6 = (v6 >>> 12) | (v6 << 20);
		v1 = (v1 + v6 + m11) | 0;
		v12 ^= v1;
		v12 = (v12 >>> 8) | (v12 << 24);
		v11 = (v11 + v12) | 0;
		v6 ^= v11;
		v6 = (v6 >>> 7) | (v6 << 25);
		v2 = (v2 + v7 + m12) | 0;
		v13 ^= v2;
		v13 = (v13 >>> 16) | (v13 << 16);
		v8 = (v8 + v13) | 0;
		v7 ^= v8;
		v7 = (v7 >>> 12) | (v7 << 20);
		v2 = (v2 + v7 + m13) | 0;
		v13 ^= v2;
		v13 = (v13 >>> 8) | (v13 << 24);
		v8 = (v8 + v13) | 0;
		v7 ^= v8;
		v7 = (v7 >>> 7) | (v7 << 25);
		v3 = (v3 + v4 + m14) | 0;
		v14 ^= v3;
		v14 = (v14 >>> 16) | (v14 << 16);
		v9 = (v9 + v14) | 0;
		v4 ^= v9;
		v4 = (v4 >>> 12) | (v4 << 20);
		v3 = (v3 + v4 + m15) | 0;
		v14 ^= v3;
		v14 = (v14 >>> 8) | (v14 << 24);
		v9 = (v9 + v14) | 0;
		v4 ^= v9;
		v4 = (v4 >>> 7) | (v4 << 25);
		spare = m0;
		m0 = m2;
		m2 = m3;
		m3 = m10;
		m10 = m12;
		m12 = m9;
		m9 = m11;
		m11 = m5;
		m5 = spare;
		spare = m1;
		m1 = m6;
		m6 = m4;
		m4 = m7;
		m7 = m13;
		m13 = m14;
		m14 = m15;
		m15 = m8;
		m8 = spare;
	}
	cv[0] = v0 ^ v8;
	cv[1] = v1 ^ v9;
	cv[2] = v2 ^ v10;
	cv[3] = v3 ^ v11;
	cv[4] = v4 ^ v12;
	cv[5] = v5 ^ v13;
	cv[6] = v6 ^ v14;
	cv[7] = v7 ^ v15;
}

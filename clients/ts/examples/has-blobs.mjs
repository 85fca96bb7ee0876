// HAS_BLOBS: which of these blobs the server has, so that only the missing ones are sent.
import { connect, hashOf } from "@turnkeep/client/node";

const client = await connect(process.env.TURNKEEP_ADDR ?? "127.0.0.1:9009", { token: process.env.TURNKEEP_TOKEN });
const blobs = ["first", "second", "third"].map((text) => Buffer.from(text));
await client.putBlob(blobs[1]);
const present = await client.hasBlobs(blobs.map(hashOf));
const missing = blobs.filter((_, index) => !present[index]);
await Promise.all(missing.map((bytes) => client.putBlob(bytes)));
console.log(`${missing.length} of ${blobs.length} were missing`);
client.close();

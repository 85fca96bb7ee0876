/** Reads the answer to a request: its value, or the error that the server gave instead. */

import { ProtocolError } from "../core/errors.js";
import { type Frame, MsgType } from "../wire/frame.js";
import { FLAG_CAUGHT_UP, failure, type ResponseCodec, serverError } from "../wire/responses.js";

/** The value of an answer to a request of this type. Throws a `ServerError` or a `ProtocolError`. */
export function readAnswer<T>(frame: Frame, msgType: number, codec: ResponseCodec<T>): T {
	const undefinedFlags = frame.flags & ~(frame.msgType === MsgType.Subscribe ? FLAG_CAUGHT_UP : 0);
	if (undefinedFlags !== 0) {
		throw new ProtocolError("undefined_flags", `an answer of message ${frame.msgType} has no flags ${undefinedFlags}`);
	}
	if (frame.msgType === MsgType.Error) throw serverError(readWhole(frame, failure));
	if (frame.msgType !== msgType) {
		throw new ProtocolError("wrong_answer", `the server answered message ${msgType} with message ${frame.msgType}`);
	}
	return readWhole(frame, codec);
}

function readWhole<T>(frame: Frame, codec: ResponseCodec<T>): T {
	const value = codec.read(frame.payload);
	frame.payload.end();
	return value;
}

// Writes msgpack: appends values to a slice, each in its shortest form. Callers ensure that lengths fit 32 bits.

package payload

import (
	"encoding/binary"
	"math"
	"math/bits"
)

func appendNil(b []byte) []byte { return append(b, 0xc0) }

func appendBool(b []byte, flag bool) []byte {
	if flag {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}

func appendUint(b []byte, n uint64) []byte {
	switch {
	case n < 0x80:
		return append(b, byte(n))
	case n <= math.MaxUint8:
		return append(b, 0xcc, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), n)
}

func appendInt(b []byte, n int64) []byte {
	switch {
	case n >= 0:
		return appendUint(b, uint64(n))
	case n >= -32:
		return append(b, byte(n))
	case n >= math.MinInt8:
		return append(b, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}

// Many bit patterns mean NaN. One pattern per width is written, so that equal values have equal bytes.
const (
	nan32 = 0x7fc00000
	nan64 = 0x7ff8000000000000
)

func appendFloat32(b []byte, f float32) []byte {
	pattern := math.Float32bits(f)
	if f != f {
		pattern = nan32
	}
	return binary.BigEndian.AppendUint32(append(b, 0xca), pattern)
}

func appendFloat64(b []byte, f float64) []byte {
	pattern := math.Float64bits(f)
	if f != f {
		pattern = nan64
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcb), pattern)
}

// appendLength appends a length of at most 32 bits behind one of three markers. A marker of 0 does not
// exist for this kind of value.
func appendLength(b []byte, n int, short, middle, long byte) []byte {
	switch {
	case n <= math.MaxUint8 && short != 0:
		return append(b, short, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, middle), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, long), uint32(n))
}

func appendString(b []byte, text string) []byte {
	if len(text) < 32 {
		return append(append(b, 0xa0|byte(len(text))), text...)
	}
	return append(appendLength(b, len(text), 0xd9, 0xda, 0xdb), text...)
}

func appendBytes(b, data []byte) []byte {
	return append(appendLength(b, len(data), 0xc4, 0xc5, 0xc6), data...)
}

func appendArray(b []byte, count int) []byte {
	if count < 16 {
		return append(b, 0x90|byte(count))
	}
	return appendLength(b, count, 0, 0xdc, 0xdd)
}

func appendMap(b []byte, count int) []byte {
	if count < 16 {
		return append(b, 0x80|byte(count))
	}
	return appendLength(b, count, 0, 0xde, 0xdf)
}

func appendExt(b []byte, ext Ext) []byte {
	switch size := len(ext.Data); size {
	case 1, 2, 4, 8, 16:
		b = append(b, 0xd4+byte(bits.TrailingZeros(uint(size))))
	default:
		b = appendLength(b, size, 0xc7, 0xc8, 0xc9)
	}
	return append(append(b, byte(ext.Type)), ext.Data...)
}

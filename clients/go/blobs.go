// Blobs, filesystem roots and bundles. These writes are idempotent by their content, so the client always repeats them.

package turnkeep

import (
	"context"
	"fmt"

	"turnkeep.dev/go/internal/wire"
)

// Blob returns a blob's uncompressed bytes.
func (c *Client) Blob(ctx context.Context, hash Hash) ([]byte, error) {
	blob, err := exchange[*wire.Blob](ctx, c, &wire.GetBlob{Hash: hash}, safe)
	if err != nil {
		return nil, err
	}
	if c.options.verify {
		return blob.Bytes, verify(hash, blob.Bytes)
	}
	return blob.Bytes, nil
}

// PutBlob stores a blob. It returns the hash, and whether the blob was new. The bytes must not change before it
// returns.
func (c *Client) PutBlob(ctx context.Context, bytes []byte) (hash Hash, isNew bool, err error) {
	hash = HashOf(bytes)
	put, err := exchange[*wire.BlobPut](ctx, c, &wire.PutBlob{Hash: hash, Bytes: bytes}, safe)
	if err != nil {
		return Hash{}, false, err
	}
	if put.Hash != hash {
		return Hash{}, false, fmt.Errorf("%w: another blob was kept", ErrProtocol)
	}
	return hash, put.WasNew, nil
}

// HasBlobs reports which of these blobs the server has, in the order of the arguments.
func (c *Client) HasBlobs(ctx context.Context, hashes []Hash) ([]bool, error) {
	present := make([]bool, 0, len(hashes))
	for len(present) < len(hashes) {
		part := hashes[len(present):min(len(present)+wire.HasBlobsMax, len(hashes))]
		asked := make([]wire.Hash, len(part))
		for i, hash := range part {
			asked[i] = hash
		}
		answer, err := exchange[*wire.Presence](ctx, c, &wire.HasBlobs{Hashes: asked}, safe)
		if err != nil {
			return nil, err
		}
		if len(answer.Present) != len(part) {
			return nil, fmt.Errorf("%w: %d answers for %d blobs", ErrProtocol, len(answer.Present), len(part))
		}
		present = append(present, answer.Present...)
	}
	return present, nil
}

// AttachFS sets a turn's filesystem root. A root is set once: the same root again succeeds, another one is
// ErrConflict. Snapshot makes a root.
func (c *Client) AttachFS(ctx context.Context, turn TurnID, root Hash) error {
	_, err := exchange[*wire.AttachFS](ctx, c, &wire.AttachFS{Turn: uint64(turn), Root: root}, safe)
	return err
}

// PublishBundle publishes a registry bundle and reports whether it was new.
func (c *Client) PublishBundle(ctx context.Context, id string, bundle []byte) (isNew bool, err error) {
	put, err := exchange[*wire.BundlePut](ctx, c, &wire.PutBundle{ID: id, JSON: bundle}, safe)
	if err != nil {
		return false, err
	}
	return put.Status == wire.StatusCreated, nil
}

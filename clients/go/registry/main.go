// The program that keeps a committed bundle in step with the types. A refused bundle never touches the file.

package registry

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Main is the main function of a program that writes the types' bundle to a file, and ends the process.
// The command turnkeep-go-registry makes and runs such a program; call it yourself from a package main
// whose types cannot be imported. The flags are
//
//	-out FILE      the bundle to be committed (default registry.json)
//	-against FILE  the published bundle to extend, if it is not the one at -out
//	-check         write nothing; fail if the file is not what the types say
func Main(types *Types) {
	os.Exit(run(types, os.Args[1:], os.Stderr))
}

// options are the flags of a run.
type options struct {
	out     string
	against string
	check   bool
}

// run returns the exit code: 0 done, 1 refused or out of date, 2 wrong usage.
func run(types *Types, args []string, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("turnkeep-go-registry", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.out, "out", "registry.json", "the bundle `FILE` to be committed")
	flags.StringVar(&o.against, "against", "", "the published bundle `FILE` to extend, if it is not the one at -out")
	flags.BoolVar(&o.check, "check", false, "write nothing; fail if the file is not what the types say")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "turnkeep-go-registry: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	if err := o.run(types); err != nil {
		fmt.Fprintf(stderr, "turnkeep-go-registry: %v\n", err)
		return 1
	}
	return 0
}

func (o options) run(types *Types) error {
	committed, err := os.ReadFile(o.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	earlier, err := o.earlier(committed)
	if err != nil {
		return err
	}
	bundle, err := types.Bundle(earlier)
	if err != nil {
		return err
	}
	text := bundle.JSON()
	switch {
	case bytes.Equal(committed, text):
		return nil
	case o.check:
		return fmt.Errorf("%s is not what the Go types say: run go generate and commit it", o.out)
	}
	return replaceFile(o.out, text)
}

// earlier returns the bundle to extend, or nil if no bundle exists yet.
func (o options) earlier(committed []byte) (*Bundle, error) {
	name, text := o.out, committed
	if o.against != "" {
		published, err := os.ReadFile(o.against)
		if err != nil {
			return nil, err
		}
		name, text = o.against, published
	}
	if text == nil {
		return nil, nil
	}
	bundle, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return bundle, nil
}

// replaceFile writes a file so that it is the old or the new one at any time.
func replaceFile(name string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".registry-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // does nothing after a successful rename
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// Command turnkeep-go-registry writes the registry bundle of a package's Go types to a file that is
// committed, and fails in CI when the file is not what the types say.
//
// The package has an exported variable of type *registry.Types and a line for go generate:
//
//	//go:generate go run turnkeep.dev/go/cmd/turnkeep-go-registry -types Types -out registry.json
//
// In CI the same with -check. The bundle of the last release, if it is elsewhere, is given by -against.
//
// Go types can be read only by a program that contains them. The command therefore builds one, whose
// only source is a line that calls registry.Main; an overlay puts it into the package's module, so that
// internal packages can be imported and nothing is written beside the package.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stderr))
}

// options are the command's flags.
type options struct {
	variable string
	dir      string
	forward  []string // the flags of registry.Main
}

func run(args []string, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	err = o.run(stderr)
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return 1 // it said why
	}
	if err != nil {
		fmt.Fprintf(stderr, "turnkeep-go-registry: %v\n", err)
		return 1
	}
	return 0
}

// errUsage says that the command was used wrongly, which was already printed.
var errUsage = errors.New("used wrongly")

func parse(args []string, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("turnkeep-go-registry", flag.ContinueOnError)
	flags.SetOutput(stderr)
	variable := flags.String("types", "Types", "the package's `variable` of type *registry.Types")
	dir := flags.String("package", ".", "the `directory` of the package")
	out := flags.String("out", "registry.json", "the bundle `FILE` to be committed")
	against := flags.String("against", "", "the published bundle `FILE` to extend, if it is not the one at -out")
	check := flags.Bool("check", false, "write nothing; fail if the file is not what the types say")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "turnkeep-go-registry: unexpected argument %q\n", flags.Arg(0))
		return options{}, errUsage
	}
	if !token.IsIdentifier(*variable) || !token.IsExported(*variable) {
		fmt.Fprintf(stderr, "turnkeep-go-registry: -types %q is not an exported variable's name\n", *variable)
		return options{}, errUsage
	}
	forward := []string{"-out", *out, fmt.Sprintf("-check=%t", *check)}
	if *against != "" {
		forward = append(forward, "-against", *against)
	}
	return options{variable: *variable, dir: *dir, forward: forward}, nil
}

func (o options) run(stderr io.Writer) error {
	pkg, err := findPackage(o.dir)
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "turnkeep-go-registry-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	program := filepath.Join(temporary, "program")
	if err := o.build(pkg, temporary, program, stderr); err != nil {
		return err
	}
	return execute(stderr, "", program, o.forward...)
}

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath string
	Name       string
	Dir        string
}

func findPackage(dir string) (goPackage, error) {
	var pkg goPackage
	list := exec.Command("go", "list", "-json=ImportPath,Name,Dir", ".")
	list.Dir = dir
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return pkg, err
	}
	if err := json.Unmarshal(text, &pkg); err != nil {
		return pkg, err
	}
	if pkg.Name == "main" {
		return pkg, fmt.Errorf("%s is a program and cannot be imported: call registry.Main from it, or move its types", pkg.ImportPath)
	}
	return pkg, nil
}

// build builds the program from a source that is in the package's directory by the overlay only.
func (o options) build(pkg goPackage, temporary, program string, stderr io.Writer) error {
	source := filepath.Join(temporary, "main.go")
	overlay := filepath.Join(temporary, "overlay.json")
	place := filepath.Join(pkg.Dir, "turnkeep_registry_program")
	replace := map[string]map[string]string{"Replace": {filepath.Join(place, "main.go"): source}}
	text, err := json.Marshal(replace)
	if err != nil {
		return err
	}
	err = errors.Join(os.WriteFile(source, o.source(pkg), 0o600), os.WriteFile(overlay, text, 0o600))
	if err != nil {
		return err
	}
	return execute(stderr, pkg.Dir, "go", "build", "-overlay", overlay, "-o", program, "./"+filepath.Base(place))
}

func (o options) source(pkg goPackage) []byte {
	return fmt.Appendf(nil, "package main\n\nimport (\n\ttypes %q\n\t\"turnkeep.dev/go/registry\"\n)\n\nfunc main() { registry.Main(types.%s) }\n",
		pkg.ImportPath, o.variable)
}

// execute runs a program whose messages are passed on; it has said why it failed.
func execute(stderr io.Writer, dir, name string, args ...string) error {
	var said bytes.Buffer
	command := exec.Command(name, args...)
	command.Dir = dir
	command.Stdout, command.Stderr = &said, &said
	err := command.Run()
	if text := strings.TrimRight(said.String(), "\n"); text != "" {
		fmt.Fprintln(stderr, text)
	}
	return err
}
